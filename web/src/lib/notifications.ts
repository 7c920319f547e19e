import type { Notice } from "../../../src/protocol/news.ts";

/** What this browser notifies of: nothing unless somebody asked for it here. */
export const NOTIFY = ["off", "urgent", "all"] as const;
export type Notify = (typeof NOTIFY)[number];
const KEY = "io.notify";

export const canNotify = (): boolean => "Notification" in window && window.isSecureContext;

export function currentNotify(): Notify {
  const kept = NOTIFY.find((each) => each === localStorage.getItem(KEY)) ?? "off";
  return canNotify() && Notification.permission === "granted" ? kept : "off";
}

/** Keeps the choice; the browser asks the person if it has not yet. Answers with what holds then. */
export async function chooseNotify(wanted: Notify): Promise<Notify> {
  if (wanted !== "off" && (await Notification.requestPermission()) !== "granted") return currentNotify();
  localStorage.setItem(KEY, wanted);
  return wanted;
}

const TITLES: Record<Notice["kind"], string> = {
  ...{ reply: "IO has news", approval: "IO waits for you", reminder: "IO still waits for you", news: "IO" },
};

/** Whether a piece of news is worth a notification: by its level, and only while nobody looks at the page. */
export function isNotified({ level }: Pick<Notice, "level">, notify: Notify, isLookedAt: boolean): boolean {
  if (isLookedAt || notify === "off" || level === "silent") return false;
  return notify === "all" || level === "urgent";
}

/** Shows a piece of news; one about the same thing takes its place in other windows too. `open` is called when it is clicked. */
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
