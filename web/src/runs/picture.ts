import { Graph, layout } from "@dagrejs/dagre";
import type { Run } from "../../../src/protocol/runs.ts";
import { approvalsOf } from "./voided.ts";

export interface Node {
  id: string;
  kind: "phase" | "stream" | "loop" | "checks" | "result";
  title: string;
  detail: string;
  state: string;
  /** How often it went round. */
  rounds: number;
  /** An approval of a tree that is no longer what stands. */
  voided: boolean;
  /** The step to open for it. */
  step: string | undefined;
  x: number;
  y: number;
}
export interface Edge {
  from: string;
  to: string;
  points: { x: number; y: number }[];
}
export interface Picture {
  nodes: Node[];
  edges: Edge[];
  width: number;
  height: number;
}

export const NODE = { width: 168, height: 56 };

/** The pipeline as it is: phases in their order, streams side by side, review loops behind what they judged. */
export function drawRun(run: Run): Picture {
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 12, ranksep: 28, marginx: 8, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  const nodes = new Map<string, Omit<Node, "x" | "y">>();
  const add = (node: Omit<Node, "x" | "y">) => {
    nodes.set(node.id, node);
    graph.setNode(node.id, { ...NODE });
  };
  let ends: string[] = [];
  for (const phase of run.phases) {
    const id = `phase ${phase.name}`;
    const steps = run.steps.filter((step) => step.phase === phase.name);
    add({
      id,
      kind: "phase",
      title: phase.name,
      detail: phase.reason ?? "",
      state: phase.status,
      rounds: 0,
      voided: false,
      step: steps[0]?.key,
    });
    for (const end of ends) graph.setEdge(end, id);
    const streams = run.streams.filter(({ number }) => steps.some((step) => step.stream === number));
    for (const { number, task, status } of streams) {
      const mine = steps.filter((step) => step.stream === number);
      const detail = status === "running" ? (mine.findLast(({ state }) => state === "begun")?.agent ?? "") : "";
      const node = `stream ${phase.name} ${number}`;
      add({
        id: node,
        kind: "stream",
        title: `${number}. ${firstLine(task)}`,
        detail,
        state: status,
        rounds: 0,
        voided: false,
        step: mine[0]?.key,
      });
      graph.setEdge(id, node);
    }
    ends = [id, ...streams.map(({ number }) => `stream ${phase.name} ${number}`)].flatMap((node) => addLoops(node, phase.name));
    // A phase with streams ends with them, not by itself.
    if (streams.length > 0 && ends[0] === id) ends = ends.slice(1);
  }
  if (run.outcome !== null) {
    const detail = run.branch ?? "";
    add({
      id: "result",
      kind: "result",
      title: run.applied ? "applied" : run.outcome,
      detail,
      state: run.outcome,
      rounds: 0,
      voided: false,
      step: undefined,
    });
    for (const end of ends) graph.setEdge(end, "result");
  }

  /** The loops that judged a phase or a stream, one behind the other; answers with the last of them. */
  function addLoops(node: string, phase: string): string[] {
    const [kind, , number] = node.split(" ");
    const stream = kind === "stream" ? Number(number) : null;
    let last = node;
    for (const loop of run.loops.filter((each) => each.phase === phase && each.stream === stream)) {
      const given = approvalsOf(run, loop);
      const voided = given.at(-1)?.voided === true;
      const detail = loop.approved === null ? "" : loop.approved.slice(0, 7);
      const id = `loop ${loop.key}`;
      const step = run.steps.findLast(({ key }) => key.startsWith(`${loop.key}/`))?.key;
      add({ id, kind: "loop", title: loop.agent, detail, state: loop.outcome, rounds: loop.reviews, voided, step });
      graph.setEdge(last, id);
      last = id;
    }
    return [last];
  }

  layout(graph);
  const { width = 0, height = 0 } = graph.graph();
  const placed = [...nodes.values()].map((node) => {
    const { x = 0, y = 0 } = graph.node(node.id) as { x?: number; y?: number };
    return { ...node, x: x - NODE.width / 2, y: y - NODE.height / 2 };
  });
  const edges = graph.edges().map((edge: { v: string; w: string }) => {
    const { points = [] } = graph.edge(edge) as { points?: Edge["points"] };
    return { from: edge.v, to: edge.w, points };
  });
  return { nodes: placed, edges, width, height };
}

const firstLine = (text: string) => text.trim().split("\n", 1)[0] ?? "";
