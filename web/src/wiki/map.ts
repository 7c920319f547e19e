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
}

export const SPOT = { width: 172, height: 44 };
const GAP = { x: 72, y: 10 };
/** With more pages than this, a layout by ranks is too slow and too hard to read, so each folder gets a column instead. */
const MOST_RANKED = 120;

/** Lays out the linked pages and the lines between them. */
export function drawMap(pages: readonly Linked[]): WikiMap {
  const known = new Map(pages.map((page) => [page.path, page]));
  const reached = new Set(pages.flatMap(({ links }) => links));
  const linked = pages.filter(({ path, links }) => links.length > 0 || reached.has(path));
  const wanted = [...reached].filter((path) => !known.has(path)).map((path) => ({ path, title: shortPath(path), missing: true }));
  const nodes = [...linked.map(({ path, title }) => ({ path, title, missing: false })), ...wanted];
  const edges = linked.flatMap(({ path, links }) => links.map((to) => ({ from: path, to })));
  const spots = nodes.length <= MOST_RANKED ? byRank(nodes, edges) : byFolder(nodes);
  const at = new Map(spots.map((spot) => [spot.path, spot]));
  const lines = edges.flatMap(({ from, to }) => {
    const [a, b] = [at.get(from), at.get(to)];
    return a && b ? [{ from, to, path: curve(a, b) }] : [];
  });
  return {
    ...{ spots, lines, alone: pages.filter(({ path, links }) => links.length === 0 && !reached.has(path)) },
    width: Math.max(0, ...spots.map(({ x }) => x + SPOT.width)) + GAP.y,
    height: Math.max(0, ...spots.map(({ y }) => y + SPOT.height)) + GAP.y,
  };
}

type Named = Omit<Spot, "x" | "y">;

function byRank(nodes: readonly Named[], edges: readonly { from: string; to: string }[]): Spot[] {
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", nodesep: GAP.y, ranksep: GAP.x, marginx: GAP.y, marginy: GAP.y });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { path } of nodes) graph.setNode(path, { ...SPOT });
  for (const { from, to } of edges) graph.setEdge(from, to);
  layout(graph);
  return nodes.map((node) => {
    const { x = 0, y = 0 } = graph.node(node.path) as { x?: number; y?: number };
    return { ...node, x: x - SPOT.width / 2, y: y - SPOT.height / 2 };
  });
}

/** One column per folder, split into several if it would get too tall. */
function byFolder(nodes: readonly Named[]): Spot[] {
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
      x: GAP.y + across * (SPOT.width + GAP.x),
      y: GAP.y + down * (SPOT.height + GAP.y),
    })),
  );
}

/** A curve that starts at the side facing the other page. */
function curve(a: Spot, b: Spot): string {
  const [y1, y2] = [a.y + SPOT.height / 2, b.y + SPOT.height / 2];
  const forward = b.x >= a.x + SPOT.width;
  const same = Math.abs(b.x - a.x) < SPOT.width;
  const x1 = forward || same ? a.x + SPOT.width : a.x;
  const x2 = forward ? b.x : same ? b.x + SPOT.width : b.x + SPOT.width;
  const pull = same ? GAP.x / 2 : (forward ? 1 : -1) * Math.max(24, Math.abs(x2 - x1) / 2);
  return `M${x1} ${y1} C${x1 + pull} ${y1} ${same ? x2 + pull : x2 - pull} ${y2} ${x2} ${y2}`;
}
