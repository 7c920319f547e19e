import { createRouter, type Route, type Router } from "./lib/router.ts";
import ChatView from "./views/ChatView.vue";

const lazy = (path: RegExp, title: string, view: Route["view"]): Route => ({ path, title, view, isLazy: true });

/** Every view has its own address, which can be linked to and reloaded. */
export function createRoutes(): Router {
  const routes: Route[] = [
    { path: /^\/chat\/(?<conversation>[^/]+)\/?$/, title: "Chat", view: ChatView },
    lazy(/^\/inbox\/?$/, "Inbox", () => import("./views/InboxView.vue")),
    lazy(/^\/squads\/?$/, "Squads", () => import("./views/SquadsView.vue")),
    lazy(/^\/squads\/(?<slug>[^/]+)\/?$/, "Squads", () => import("./views/SquadView.vue")),
    lazy(/^\/tasks\/?$/, "Tasks", () => import("./views/TasksView.vue")),
    lazy(/^\/tasks\/(?<id>[^/]+)\/?$/, "Tasks", () => import("./views/TaskView.vue")),
    lazy(/^\/runs\/?$/, "Runs", () => import("./views/RunsView.vue")),
    lazy(/^\/runs\/(?<id>[^/]+)(?:\/(?<rest>steps\/.*))?\/?$/, "Runs", () => import("./views/RunView.vue")),
    lazy(/^\/wiki(?:\/(?<path>.*))?$/, "Wiki", () => import("./views/WikiView.vue")),
    lazy(/^\/sources\/(?<name>[^/]+)\/?$/, "Wiki", () => import("./views/SourceView.vue")),
    lazy(/^\/skills(?:\/(?<slug>[^/]+))?\/?$/, "Skills", () => import("./views/SkillsView.vue")),
    lazy(/^\/usage\/?$/, "Usage", () => import("./views/UsageView.vue")),
    lazy(/^\/settings\/?$/, "Settings", () => import("./views/SettingsView.vue")),
    lazy(/^/, "Nothing here", () => import("./views/NowhereView.vue")),
  ];
  return createRouter(routes, { "/": "/chat/main", "/chat": "/chat/main", "/chat/": "/chat/main" });
}
