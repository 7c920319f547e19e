import type { Notice } from "../../../src/protocol/news.ts";

/** When this browser shows notifications: never, unless the user asked for them here. */
export const NOTIFY = ["off", "urgent", "all"] as const;
export type Notify = (typeof NOTIFY)[number];
const KEY = "io.notify";

export const canNotify = (): boolean => "Notification" in window && window.isSecureContext;

export function currentNotify(): Notify {
  const kept = NOTIFY.find((each) => each === localStorage.getItem(KEY)) ?? "off";
  return canNotify() && Notification.permission === "granted" ? kept : "off";
}

/** Saves the choice; the browser asks for permission if necessary. Returns the setting that now applies. */
export async function chooseNotify(wanted: Notify): Promise<Notify> {
  if (wanted !== "off" && (await Notification.requestPermission()) !== "granted") return currentNotify();
  localStorage.setItem(KEY, wanted);
  return wanted;
}

const TITLES: Record<Notice["kind"], string> = {
  ...{ reply: "IO has news", approval: "IO waits for you", reminder: "IO still waits for you", news: "IO" },
};

/** Whether to notify the user: depends on the notice's level, and only happens while the page does not have the focus. */
export function isNotified({ level }: Pick<Notice, "level">, notify: Notify, isLookedAt: boolean): boolean {
  if (isLookedAt || notify === "off" || level === "silent") return false;
  return notify === "all" || level === "urgent";
}

/**
 * Shows a notification, which replaces an earlier one about the same thing, also in other windows. `open` is called on a click.
 */
export function notify(notice: Notice, open: (path: string) => void): void {
  if (!isNotified(notice, currentNotify(), document.hasFocus())) return;
  const { kind, about, conversation, text, level } = notice;
  const shown = new Notification(TITLES[kind], { body: text, tag: about, icon: "/icon.svg", silent: level !== "urgent" });
  shown.onclick = () => {
    window.focus();
    open(kind === "reply" ? `/chat/${encodeURIComponent(conversation)}#${about}` : "/inbox");
    shown.close();
  };
}
