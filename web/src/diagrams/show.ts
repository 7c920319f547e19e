import type { Picture } from "./draw.ts";

/** Puts the picture before the text it was drawn from, which stays there to be read, folded. */
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

/** The colours that the page is shown in now. */
export const isDark = (): boolean => {
  const chosen = document.documentElement.dataset.theme;
  return chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
};
