import type { Picture } from "./draw.ts";

/** Replaces a diagram's source with the picture; the source stays below it, folded. */
export function showPicture(block: Element, picture: Picture, dark: boolean): void {
  if ("problem" in picture) {
    const words = document.createElement("p");
    words.className = "faint no-diagram";
    words.textContent = `This diagram could not be drawn: ${picture.problem}`;
    block.append(words);
    return;
  }
  const { source, title, width, height } = picture;
  const image = new Image(width, height);
  image.src = source;
  image.alt = title === "" ? "Diagram; its text follows" : title;
  const figure = document.createElement("figure");
  figure.className = dark ? "diagram dark" : "diagram";
  const text = document.createElement("details");
  const summary = document.createElement("summary");
  summary.textContent = "Source";
  block.replaceWith(figure);
  text.append(summary, block);
  figure.append(image, text);
}

/** Whether the page currently uses the dark theme. */
export const isDark = (): boolean => {
  const chosen = document.documentElement.dataset.theme;
  return chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
};
