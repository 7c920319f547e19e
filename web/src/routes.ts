import { createRouter, createWebHistory, type Router } from "vue-router";
import ChatView from "./views/ChatView.vue";

/** Every place of the page has an address of its own, which can be linked to and reloaded. */
export function createRoutes(): Router {
  const router = createRouter({
    history: createWebHistory(),
    routes: [
      { path: "/", redirect: "/chat/main" },
      { path: "/chat", redirect: "/chat/main" },
      { path: "/chat/:conversation", component: ChatView, meta: { title: "Chat" } },
      { path: "/squads", component: () => import("./views/SquadsView.vue"), meta: { title: "Squads" } },
      { path: "/squads/:slug", component: () => import("./views/SquadView.vue"), meta: { title: "Squads" } },
      { path: "/tasks", component: () => import("./views/TasksView.vue"), meta: { title: "Tasks" } },
      { path: "/tasks/:id", component: () => import("./views/TaskView.vue"), meta: { title: "Tasks" } },
      { path: "/runs", component: () => import("./views/RunsView.vue"), meta: { title: "Runs" } },
      { path: "/runs/:id/:rest(steps/.*)?", component: () => import("./views/RunView.vue"), meta: { title: "Runs" } },
      { path: "/wiki/:path(.*)?", component: () => import("./views/WikiView.vue"), meta: { title: "Wiki" } },
      { path: "/skills/:slug?", component: () => import("./views/SkillsView.vue"), meta: { title: "Skills" } },
      { path: "/usage", component: () => import("./views/UsageView.vue"), meta: { title: "Usage" } },
      { path: "/settings", component: () => import("./views/SettingsView.vue"), meta: { title: "Settings" } },
      { path: "/:rest(.*)", component: () => import("./views/NowhereView.vue"), meta: { title: "Nothing here" } },
    ],
  });
  router.afterEach(({ meta, params }) => {
    const place = params.conversation ?? params.slug ?? params.id ?? params.path;
    document.title = [place, meta.title, "IO"].filter((part) => typeof part === "string" && part !== "").join(" · ");
  });
  return router;
}
