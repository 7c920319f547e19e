import { createApp } from "vue";
import App from "./App.vue";
import { TYPED, watchEarlyField } from "./chat/early-field.ts";
import { messagesPath } from "./chat/use-conversation.ts";
import { createIo, IO } from "./io.ts";
import { afterPaint } from "./lib/after-paint.ts";
import { createMarkdown } from "./lib/markdown.ts";
import { ROUTER } from "./lib/router.ts";
import { MARKDOWN } from "./lib/use-markdown.ts";
import { createRoutes } from "./routes.ts";
import "./style.css";

const address = new URL(location.href);
const ticket = address.searchParams.get("ticket");
if (ticket !== null) {
  address.searchParams.delete("ticket");
  history.replaceState(history.state, "", address);
}
/** The chat's messages are requested before the page is built. Everything else loads after the first paint. */
const io = createIo({
  isSignedIn: document.documentElement.dataset.signedIn !== undefined,
  firstPath: () => {
    const chat = /^\/(?:chat(?:\/([\w.-]+))?)?\/?$/.exec(location.pathname);
    return chat ? messagesPath(chat[1] ?? "main") : undefined;
  },
});
const began = io.begin(ticket);
const drawn = io.asked().then(afterPaint);
void drawn.then(io.settle);

const startWorker = () => new Worker(new URL("./lib/markdown-worker.ts", import.meta.url), { type: "module" });
const field = watchEarlyField();
const app = createApp(App, { began })
  .provide(IO, io)
  .provide(MARKDOWN, createMarkdown(startWorker, drawn))
  .provide(ROUTER, createRoutes())
  .provide(TYPED, field.take);
/** Wait for the messages, but at most 500 ms, so that the page is drawn only once. */
void Promise.race([io.asked(), new Promise((late) => setTimeout(late, 500))]).then(() => {
  field.keep();
  app.mount("#app");
});
