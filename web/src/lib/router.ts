import { type Component, defineComponent, h, type InjectionKey, inject, shallowReactive } from "vue";

/** A kind of view: its addresses, its title and its component. */
export interface Route {
  path: RegExp;
  title: string;
  /** A component of the first bundle, or a function that loads one on demand. */
  view: Component | (() => Promise<{ default: Component }>);
  isLazy?: boolean;
}

/** The current place: the parsed address, and its component once that is loaded. */
export interface Place {
  path: string;
  fullPath: string;
  hash: string;
  query: Record<string, string>;
  params: Record<string, string | undefined>;
  view: Component | undefined;
}

const RETRY_MS = 2_000;
const Unreachable = defineComponent({
  setup: () => () =>
    h("div", { class: "empty" }, [
      h("h1", { class: "says" }, "The daemon does not answer."),
      h("p", { class: "faint" }, ["This view comes as soon as it is back. In a terminal: ", h("code", "io start")]),
    ]),
});

const Missing = defineComponent({
  setup: () => () =>
    h("div", { class: "empty" }, [
      h("p", { class: "says", role: "alert" }, "A part of the page could not be loaded."),
      h("p", { class: "faint" }, ["If it stays so, in a terminal: ", h("code", "io restart")]),
      h("button", { type: "button", onClick: () => location.reload() }, "Reload"),
    ]),
});

const RELOADED = "io.reloaded";
const SOON_MS = 60_000;
/** Prevents an endless loop: a page that was reloaded for new files a moment ago already has the latest ones. */
function mayReload(): boolean {
  const isFresh = Date.now() - Number(sessionStorage.getItem(RELOADED)) < SOON_MS;
  if (!isFresh) sessionStorage.setItem(RELOADED, String(Date.now()));
  return !isFresh;
}

/** Maps addresses to views. Small on purpose, because all of this runs before the page shows anything. */
export function createRouter(routes: readonly Route[], redirects: Readonly<Record<string, string>>) {
  const place = shallowReactive<Place>({ path: "", fullPath: "", hash: "", query: {}, params: {}, view: undefined });
  let latest = 0;
  let title = "IO";
  let waiting = 0;
  /** What the view says its place is called, for as long as it is there. */
  let called: { address: string; name: string } | undefined;
  const showTitle = () => {
    document.title = waiting > 0 ? `(${waiting}) ${title}` : title;
  };
  const retitle = (found: Route) => {
    const address = addressOf(place);
    const name = called?.address === `${found.title} ${address}` ? called.name : address;
    title = [name, found.title, "IO"].filter((part) => part !== undefined && part !== "").join(" · ");
    showTitle();
  };

  async function enter(url: URL): Promise<void> {
    latest += 1;
    const mine = latest;
    const found = routes.find(({ path }) => path.test(url.pathname));
    if (!found) return;
    let view = found.view as Component;
    if (found.isLazy) {
      try {
        view = (await (found.view as () => Promise<{ default: Component }>)()).default;
      } catch {
        const isThere = await fetch("/api/health").then(
          ({ ok }) => ok,
          () => false,
        );
        if (mine !== latest) return;
        // The daemon now has another version with other files, so load its page.
        if (isThere && mayReload()) {
          location.assign(url);
          return;
        }
        // Without a daemon, a reload would only show the browser's error page.
        if (!isThere) setTimeout(() => mine === latest && void enter(url), RETRY_MS);
        view = isThere ? Missing : Unreachable;
      }
    }
    if (mine !== latest) return;
    const params: Place["params"] = {};
    for (const [name, value] of Object.entries(found.path.exec(url.pathname)?.groups ?? {})) params[name] = decoded(value);
    Object.assign(place, {
      ...{ path: url.pathname, fullPath: url.pathname + url.search + url.hash, hash: url.hash },
      ...{ query: Object.fromEntries(url.searchParams), params, view },
    });
    retitle(found);
  }
  const here = () => {
    const to = redirects[location.pathname];
    if (to !== undefined) history.replaceState(history.state, "", to);
    return enter(new URL(location.href));
  };
  window.addEventListener("popstate", () => void here());
  void here();

  return {
    place,
    /** Shows the number of things waiting for the user in front of the title. */
    showWaiting(count: number): void {
      waiting = count;
      showTitle();
    },
    /** What the title calls this place instead of its address, once the view knows it. */
    showName(name: string): void {
      const found = routes.find(({ path }) => path.test(place.path));
      if (!found) return;
      called = { address: `${found.title} ${addressOf(place)}`, name };
      retitle(found);
    },
    push(to: string): Promise<void> {
      const url = new URL(to, location.href);
      const target = redirects[url.pathname];
      if (target !== undefined) url.pathname = target;
      if (url.href !== location.href) history.pushState(null, "", url);
      return enter(url);
    },
  };
}
export type Router = ReturnType<typeof createRouter>;

export const ROUTER: InjectionKey<Router> = Symbol("router");

export function useRouter(): Router {
  const router = inject(ROUTER);
  if (!router) throw new Error("There is no page around this.");
  return router;
}
export const useRoute = (): Readonly<Place> => useRouter().place;

/** A link inside the page. Clicks with a modifier key or another mouse button are left to the browser. */
export const RouterLink = defineComponent({
  props: { to: { type: String, required: true } },
  setup(props, { slots }) {
    const router = useRouter();
    const isHere = () => router.place.path === props.to.replace(/[?#].*$/, "");
    const follow = (event: MouseEvent) => {
      if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
        return;
      event.preventDefault();
      void router.push(props.to);
    };
    return () => h("a", { href: props.to, "aria-current": isHere() ? "page" : undefined, onClick: follow }, slots.default?.());
  },
});

/** The name in the address of what a view shows. */
const addressOf = ({ params: { conversation, slug, id, path } }: Place) => conversation ?? slug ?? id ?? path;

/** An address may contain an invalid percent-encoding. */
function decoded(value: string | undefined): string | undefined {
  try {
    return value === undefined ? undefined : decodeURIComponent(value);
  } catch {
    return value;
  }
}
