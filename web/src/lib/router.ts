import { type Component, defineComponent, h, type InjectionKey, inject, shallowReactive } from "vue";

/** One kind of place: which addresses are such, what it is called, and what shows it. */
export interface Route {
  path: RegExp;
  title: string;
  /** Comes at once where it is part of the first file, else when somebody goes there. */
  view: Component | (() => Promise<{ default: Component }>);
  isLazy?: boolean;
}

/** Where the page is: what the address says, and what shows it once that is there. */
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
      h("p", "The daemon does not answer."),
      h("p", { class: "faint" }, ["This view comes as soon as it is back. In a terminal: ", h("code", "io start")]),
    ]),
});

const Missing = defineComponent({
  setup: () => () =>
    h("div", { class: "empty" }, [
      h("p", { role: "alert" }, "A part of the page could not be loaded."),
      h("p", { class: "faint" }, ["If it stays so, in a terminal: ", h("code", "io restart")]),
      h("button", { type: "button", onClick: () => location.reload() }, "Reload"),
    ]),
});

const RELOADED = "io.reloaded";
const SOON_MS = 60_000;
/** A page that was loaded anew for its files a moment ago already has the newest: doing so again would never end. */
function mayReload(): boolean {
  const isFresh = Date.now() - Number(sessionStorage.getItem(RELOADED)) < SOON_MS;
  if (!isFresh) sessionStorage.setItem(RELOADED, String(Date.now()));
  return !isFresh;
}

/** Every place has an address. Small on purpose: before the first word can be read, all of this has run. */
export function createRouter(routes: readonly Route[], redirects: Readonly<Record<string, string>>) {
  const place = shallowReactive<Place>({ path: "", fullPath: "", hash: "", query: {}, params: {}, view: undefined });
  let latest = 0;
  let title = "IO";
  let waiting = 0;
  const showTitle = () => {
    document.title = waiting > 0 ? `(${waiting}) ${title}` : title;
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
        // The daemon is another version by now and has other files: its own page knows them.
        if (isThere && mayReload()) {
          location.assign(url);
          return;
        }
        // Without a daemon the browser would only show a page of its own.
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
    const name = params.conversation ?? params.slug ?? params.id ?? params.path;
    title = [name, found.title, "IO"].filter((part) => part !== undefined && part !== "").join(" · ");
    showTitle();
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
    /** How much waits for a person stands before the title. */
    showWaiting(count: number): void {
      waiting = count;
      showTitle();
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

/** A link inside the page; with a key held down, or into another window, it is the browser's. */
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

/** An address may hold what is no encoding of anything. */
function decoded(value: string | undefined): string | undefined {
  try {
    return value === undefined ? undefined : decodeURIComponent(value);
  } catch {
    return value;
  }
}
