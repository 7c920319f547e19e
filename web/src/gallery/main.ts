import { createApp } from "vue";
import { createIo, IO } from "../io.ts";
import { createMarkdown } from "../lib/markdown.ts";
import { createRouter, ROUTER } from "../lib/router.ts";
import { MARKDOWN } from "../lib/use-markdown.ts";
import GalleryView from "./GalleryView.vue";
import "../style.css";
import "../style/gallery.css";

/** Shows every component in all its states on one page, without a daemon: `npm run page:gallery`. */
const startWorker = () => new Worker(new URL("../lib/markdown-worker.ts", import.meta.url), { type: "module" });
createApp(GalleryView)
  .provide(IO, createIo())
  .provide(MARKDOWN, createMarkdown(startWorker))
  .provide(ROUTER, createRouter([{ path: /^/, title: "Components", view: GalleryView }], {}))
  .mount("#app");
