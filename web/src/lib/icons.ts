/** The page's icons: stroked paths on a 16-unit grid. Each is a separate export, so that unused ones are not loaded. */
export const inbox = "M2.5 9 4.3 3h7.4l1.8 6v4h-11zM2.5 9h3.2l1 2h2.6l1-2h3.2";
export const chat = "M2.5 3h11v8H7.8l-3.3 2.5V11h-2z";
export const people =
  "M6 7.4a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4zM1.8 13c.3-2.4 2-3.6 4.2-3.6s3.9 1.2 4.2 3.6M10.6 3.3a2.1 2.1 0 0 1 0 4M11.8 9.6c1.4.4 2.2 1.5 2.4 3.4";
export const task = "M3 3h10v10H3zM5.6 8.1l1.7 1.7 3.2-3.6";
export const branch =
  "M4.5 5.4v5.2M4.5 5.4a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM4.5 13.6a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM11.5 5.4a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM11.5 5.4c0 2.6-1.6 3.4-4 3.6-1.7.1-3 .6-3 1.6";
export const book = "M3 2.5h8.5a1 1 0 0 1 1 1v10H4.3A1.3 1.3 0 0 1 3 12.2zM3 12.2A1.3 1.3 0 0 1 4.3 11h8.2";
export const bolt = "M9 1.8 3.5 9h4L7 14.2 12.5 7h-4z";
export const bars = "M3 13.5V9M8 13.5v-11M13 13.5V6";
export const sliders =
  "M2.5 4.5h6M11.5 4.5h2M2.5 11.5h2M7.5 11.5h6M10 6a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM6 13a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3z";
export const plus = "M8 3v10M3 8h10";
export const search = "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3l3.4 3.4";
export const menu = "M2.5 4.5h11M2.5 8h11M2.5 11.5h11";
export const more = "M3.5 8h.01M8 8h.01M12.5 8h.01";
export const copy = "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3";
export const retry = "M13 8a5 5 0 1 1-1.5-3.6M13 2.5v3h-3";
export const pencil = "M3 13l.6-2.8L10.8 3a1.2 1.2 0 0 1 1.7 0l.5.5a1.2 1.2 0 0 1 0 1.7L5.8 12.4z";
export const undo = "M5.5 3 2.5 6l3 3M2.5 6h7a4 4 0 0 1 0 8H6";
export const arrowUp = "M8 13V3.5M3.8 7.5 8 3.3l4.2 4.2";
export const square = "M4.5 4.5h7v7h-7z";
export const check = "M3 8.5 6.3 12 13 4.5";
export const cross = "M4 4l8 8M12 4l-8 8";
export const warning = "M8 2.5 14.3 13.5H1.7zM8 6.5v3.5M8 12h.01";
export const terminal = "M2.5 4 6.5 8l-4 4M8 12h5.5";
export const file = "M4 2h5l3 3v9H4zM9 2v3h3";
export const clip = "M12.5 7.5 7.6 12.4a2.6 2.6 0 0 1-3.7-3.7l5.6-5.6a1.8 1.8 0 0 1 2.5 2.5l-5.4 5.4a.9.9 0 0 1-1.2-1.2l4.6-4.6";
export const globe =
  "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM2 8h12M8 2c2 1.8 2.6 4 2.6 6S10 12.2 8 14C6 12.2 5.4 10 5.4 8S6 3.8 8 2z";
export const tool = "M13.3 4.7a3.5 3.5 0 0 1-4.7 4.3l-4.5 4.5-1.6-1.6L7 7.4a3.5 3.5 0 0 1 4.3-4.7L9.2 4.8l2 2z";
export const clock = "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.8V8l2.2 1.5";
export const home = "M2.5 7.5 8 2.8l5.5 4.7M4 6.5v7h8v-7";
export const folder = "M2 4.5h4l1.5 1.5H14v7H2z";
export const split = "M2.5 3h11v10h-11zM8 3v10";
export const rows = "M2.5 3h11v10h-11zM2.5 8h11";
export const bell = "M4 11.5V7a4 4 0 0 1 8 0v4.5l1 1H3zM6.8 14.2h2.4";
