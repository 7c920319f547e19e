export interface Key {
  keys: string;
  does: string;
}

/** All keyboard shortcuts, as the list shows them. */
export const KEYS: readonly Key[] = [
  { keys: "Ctrl K or ⌘ K", does: "the palette: go anywhere, do anything" },
  { keys: "?", does: "this list" },
  { keys: "g then i, c, s, t, r, w", does: "Inbox, Chat, Squads, Tasks, Runs, Wiki" },
  { keys: "/", does: "to the field one types into" },
  { keys: "Enter", does: "sends; into the turn while one runs" },
  { keys: "Alt Enter", does: "queues behind the turn that runs" },
  { keys: "Shift Enter", does: "a new line" },
  { keys: "Escape", does: "closes what is open; in the chat ends the turn" },
];

/** Whether a key belongs to a text field or an open dialog instead of the page. */
export function isTaken({ target }: KeyboardEvent): boolean {
  if (document.querySelector("dialog[open]")) return true;
  return target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}
