import { Graph, layout } from "@dagrejs/dagre";
import type { Linked } from "./backlinks.ts";
import { shortPath } from "./paths.ts";

export interface Spot {
  path: string;
  title: string;
  /** Whether the page is linked to but does not exist. */
  missing: boolean;
  x: number;
  y: number;
}
export interface WikiMap {
  spots: Spot[];
  lines: { from: string; to: string; path: string }[];
  /** Pages without any links to or from them. */
  alone: Linked[];
  width: number;
  height: number;
  /** The size of each page's box. */
  spot: { width: number; height: number };
}

const WIDE = { width: 172, height: 44 };
/** Where there is little room, links lead down, and three pages fit side by side. */
const NARROW = { width: 104, height: 44 };
const GAP = { x: 72, y: 10 };
/** With more pages than this, a layout by ranks is too slow and too hard to read, so each folder gets a column instead. */
const MOST_RANKED = 120;

/** Lays out the linked pages and the lines between them. */
export function drawMap(pages: readonly Linked[], isNarrow = false): WikiMap {
  const spot = isNarrow ? NARROW : WIDE;
  const known = new Map(pages.map((page) => [page.path, page]));
  const reached = new Set(pages.flatMap(({ links }) => links));
  const linked = pages.filter(({ path, links }) => links.length > 0 || reached.has(path));
  const wanted = [...reached].filter((path) => !known.has(path)).map((path) => ({ path, title: shortPath(path), missing: true }));
  const nodes = [...linked.map(({ path, title }) => ({ path, title, missing: false })), ...wanted];
  const edges = linked.flatMap(({ path, links }) => links.map((to) => ({ from: path, to })));
  const spots = nodes.length <= MOST_RANKED ? byRank(nodes, edges, isNarrow) : byFolder(nodes, spot);
  const at = new Map(spots.map((spot) => [spot.path, spot]));
  const lines = edges.flatMap(({ from, to }) => {
    const [a, b] = [at.get(from), at.get(to)];
    return a && b ? [{ from, to, path: curve(a, b, spot, isNarrow && nodes.length <= MOST_RANKED) }] : [];
  });
  return {
    ...{ spots, lines, spot, alone: pages.filter(({ path, links }) => links.length === 0 && !reached.has(path)) },
    width: Math.max(0, ...spots.map(({ x }) => x + spot.width)) + GAP.y,
    height: Math.max(0, ...spots.map(({ y }) => y + spot.height)) + GAP.y,
  };
}

type Named = Omit<Spot, "x" | "y">;

function byRank(nodes: readonly Named[], edges: readonly { from: string; to: string }[], isNarrow: boolean): Spot[] {
  const spot = isNarrow ? NARROW : WIDE;
  const graph = new Graph();
  graph.setGraph({
    rankdir: isNarrow ? "TB" : "LR",
    nodesep: GAP.y,
    ranksep: isNarrow ? 48 : GAP.x,
    marginx: GAP.y,
    marginy: GAP.y,
  });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { path } of nodes) graph.setNode(path, { ...spot });
  for (const { from, to } of edges) graph.setEdge(from, to);
  layout(graph);
  return nodes.map((node) => {
    const { x = 0, y = 0 } = graph.node(node.path) as { x?: number; y?: number };
    return { ...node, x: x - spot.width / 2, y: y - spot.height / 2 };
  });
}

/** One column per folder, split into several if it would get too tall. */
function byFolder(nodes: readonly Named[], spot: WikiMap["spot"]): Spot[] {
  const rows = Math.max(12, Math.ceil(Math.sqrt(nodes.length * 2.5)));
  const folders = new Map<string, Named[]>();
  for (const node of nodes) {
    const folder = shortPath(node.path).split("/").slice(0, -1).join("/");
    folders.set(folder, [...(folders.get(folder) ?? []), node]);
  }
  const columns = [...folders.values()].flatMap((all) =>
    Array.from({ length: Math.ceil(all.length / rows) }, (_, index) => all.slice(index * rows, (index + 1) * rows)),
  );
  return columns.flatMap((column, across) =>
    column.map((node, down) => ({
      ...node,
      x: GAP.y + across * (spot.width + GAP.x),
      y: GAP.y + down * (spot.height + GAP.y),
    })),
  );
}

/** A curve that starts at the side facing the other page. `isDown`: links lead down instead of to the right. */
function curve(a: Spot, b: Spot, spot: WikiMap["spot"], isDown: boolean): string {
  const [along, across] = isDown ? (["y", "x"] as const) : (["x", "y"] as const);
  const [long, wide] = isDown ? [spot.height, spot.width] : [spot.width, spot.height];
  const [from, to] = [a[across] + wide / 2, b[across] + wide / 2];
  const forward = b[along] >= a[along] + long;
  const same = Math.abs(b[along] - a[along]) < long;
  const begin = forward || same ? a[along] + long : a[along];
  const end = forward ? b[along] : b[along] + long;
  const pull = same ? GAP.x / 2 : (forward ? 1 : -1) * Math.max(24, Math.abs(end - begin) / 2);
  const point = (far: number, near: number) => (isDown ? `${near} ${far}` : `${far} ${near}`);
  return `M${point(begin, from)} C${point(begin + pull, from)} ${point(same ? end + pull : end - pull, to)} ${point(end, to)}`;
}
