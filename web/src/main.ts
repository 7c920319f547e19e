import { createApp } from "vue";
import App from "./App.vue";
import { createIo, IO } from "./io.ts";
import { createMarkdown } from "./lib/markdown.ts";
import { applyTheme, savedTheme } from "./lib/theme.ts";
import { MARKDOWN } from "./lib/use-markdown.ts";
import { createRoutes } from "./routes.ts";
import "./style.css";

applyTheme(savedTheme());
const address = new URL(location.href);
const ticket = address.searchParams.get("ticket");
if (ticket !== null) {
  address.searchParams.delete("ticket");
  history.replaceState(history.state, "", address);
}
const startWorker = () => new Worker(new URL("./lib/markdown-worker.ts", import.meta.url), { type: "module" });
createApp(App, { ticket })
  .provide(IO, createIo())
  .provide(MARKDOWN, createMarkdown(startWorker))
  .use(createRoutes())
  .mount("#app");
