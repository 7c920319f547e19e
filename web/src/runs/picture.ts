import type { Run } from "../../../src/protocol/runs.ts";
import { type ShownState, showState } from "../../../src/protocol/shown-state.ts";
import { approvalsOf } from "./voided.ts";

export interface Node {
  id: string;
  kind: "phase" | "stream" | "loop" | "checks" | "result";
  title: string;
  detail: string;
  shown: ShownState;
  /** How many reviews the loop has had. */
  rounds: number;
  /** Whether the approval is of a tree that has changed since. */
  voided: boolean;
  /** The step that a click opens. */
  step: string | undefined;
  x: number;
  y: number;
}
export interface Edge {
  from: string;
  to: string;
  path: string;
}
export interface Picture {
  nodes: Node[];
  edges: Edge[];
  width: number;
  height: number;
}

export const NODE = { width: 156, height: 48 };
const GAP = { x: 24, y: 8 };
const MARGIN = 4;

/**
 * The pipeline as a picture: phases side by side in order; below each, its review loops, or its streams in order with their own
 * loops. In the narrow layout, phases are arranged vertically, with their contents beside them.
 */
export function drawRun(run: Run, isNarrow = false): Picture {
  const nodes: Node[] = [];
  const edges: Edge[] = [];
  let column = 0;
  let row = 0;
  /** Puts a node below the last one of its column, or at the top of the next column. */
  const add = (node: Omit<Node, "x" | "y">, isHead: boolean): void => {
    row = isHead ? 0 : row + 1;
    if (isHead && nodes.length > 0) column += 1;
    if (isNarrow) return void nodes.push(belowTheLast(node, isHead));
    const [x, y] = [MARGIN + column * (NODE.width + GAP.x), MARGIN + row * (NODE.height + GAP.y)];
    const before = isHead ? nodes.findLast((each) => each.kind === "phase") : nodes.at(-1);
    if (before && isHead)
      edges.push({ from: before.id, to: node.id, path: `M${before.x + NODE.width} ${y + NODE.height / 2}H${x}` });
    else if (before) edges.push({ from: before.id, to: node.id, path: `M${x + NODE.width / 2} ${before.y + NODE.height}V${y}` });
    nodes.push({ ...node, x, y });
  };
  /** The narrow layout: a phase goes below everything before it, and its contents to its right, the first on the same line. */
  const belowTheLast = (node: Omit<Node, "x" | "y">, isHead: boolean): Node => {
    const lowest = Math.max(MARGIN - NODE.height - GAP.y, ...nodes.map(({ y }) => y));
    const head = nodes.findLast(({ kind }) => kind === "phase");
    const isFirst = nodes.at(-1) === head;
    const [x, y] = isHead
      ? [MARGIN, lowest + NODE.height + GAP.y]
      : [MARGIN + NODE.width + GAP.x, isFirst ? lowest : lowest + NODE.height + GAP.y];
    if (head && isHead) edges.push({ from: head.id, to: node.id, path: `M${x + 20} ${head.y + NODE.height}V${y}` });
    else if (head && isFirst) edges.push({ from: head.id, to: node.id, path: `M${x - GAP.x} ${y + NODE.height / 2}H${x}` });
    else if (head) edges.push({ from: head.id, to: node.id, path: `M${x + NODE.width / 2} ${y - GAP.y}V${y}` });
    return { ...node, x, y };
  };
  const addLoops = (phase: string, stream: number | null): void => {
    for (const loop of run.loops.filter((each) => each.phase === phase && each.stream === stream)) {
      const voided = approvalsOf(run, loop).at(-1)?.voided === true;
      const node = {
        ...{ id: `loop ${loop.key}`, kind: "loop" as const, title: loop.agent, detail: loop.approved?.slice(0, 7) ?? "" },
        ...{ rounds: loop.reviews, voided, step: run.steps.findLast(({ key }) => key.startsWith(`${loop.key}/`))?.key },
        shown: showState({ kind: "review", outcome: loop.outcome, isVoid: voided }),
      };
      add(node, false);
    }
  };

  for (const { name, reason, status } of run.phases) {
    const steps = run.steps.filter((step) => step.phase === name);
    const head = {
      id: `phase ${name}`,
      kind: "phase" as const,
      title: name,
      detail: withoutName(reason ?? "", name),
      rounds: 0,
      voided: false,
    };
    add({ ...head, shown: showState({ kind: "phase", status }), step: steps[0]?.key }, true);
    for (const stream of streamsOf(run, name)) {
      const mine = steps.filter((step) => step.stream === stream.number);
      const node = {
        ...{ id: `stream ${name} ${stream.number}`, kind: "stream" as const, rounds: 0, voided: false, step: mine[0]?.key },
        title: `${stream.number}. ${firstLine(stream.task)}`,
        detail: stream.status === "running" ? (mine.findLast(({ state }) => state === "begun")?.agent ?? "") : "",
        shown: showState({ kind: "stream", status: stream.status }),
      };
      add(node, false);
      addLoops(name, stream.number);
    }
    addLoops(name, null);
  }
  if (run.outcome !== null) {
    const node = {
      ...{ id: "result", kind: "result" as const, title: run.applied ? "applied" : "result", detail: "" },
      ...{ rounds: 0, voided: false, step: undefined },
      shown: showState({ kind: "run", status: run.status, outcome: run.outcome }),
    };
    add(node, true);
  }
  const ends = { x: Math.max(0, ...nodes.map(({ x }) => x)), y: Math.max(0, ...nodes.map(({ y }) => y)) };
  return { nodes, edges, width: ends.x + NODE.width + MARGIN, height: ends.y + NODE.height + MARGIN };
}

const streamsOf = (run: Run, phase: string) =>
  run.streams
    .filter(({ number }) => run.steps.some((step) => step.phase === phase && step.stream === number))
    .sort((a, b) => a.number - b.number);

/** A reason as it reads below the name of its phase. */
const withoutName = (reason: string, name: string) => (reason.startsWith(`${name}: `) ? reason.slice(name.length + 2) : reason);

const firstLine = (text: string) => text.trim().split("\n", 1)[0] ?? "";
