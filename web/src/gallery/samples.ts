import type { Approval } from "../../../src/protocol/approvals.ts";
import type { Stateful } from "../../../src/protocol/shown-state.ts";

export const DIFF = `diff --git a/src/cart.ts b/src/cart.ts
@@ -1,5 +1,6 @@
 export function total(prices: number[]): string {
-  // in euros
-  return prices.reduce((a, b) => a + b, 0).toFixed(2);
+  const cents = prices.reduce((sum, price) => sum + Math.round(price * 100), 0);
+  /* as text */
+  return (cents / 100).toFixed(2);
 }
diff --git a/test/cart.test.ts b/test/cart.test.ts
new file mode 100644
@@ -0,0 +1 @@
+test("three items", () => expect(total([0.1, 0.2, 0.3])).toBe("0.60"));
`;

export const MARKDOWN_SAMPLE = `## A heading

Words with **weight**, \`code\` and a [link](https://example.org).

- [x] done
- [ ] to do

\`\`\`ts
const answer: number = 42; // of course
\`\`\`

| file | lines |
| --- | --- |
| cart.ts | 6 |
`;

export const STATES: readonly Stateful[] = [
  ...(["running", "done", "skipped", "failed", "cancelled"] as const).map((status) => ({ kind: "phase" as const, status })),
  ...(["approved", "untested", "unapproved", "unchanged"] as const).map((outcome) => ({
    ...{ kind: "run" as const, status: "done" as const, outcome },
  })),
];

export const WORDS = ["idle", "ok", "warning", "failed", "working", "used up", "draining"];

const at = (minutes: number) => new Date(Date.UTC(2026, 0, 5, 9, minutes)).toISOString();

export const APPROVAL: Approval = {
  ...{ id: "a_1", kind: "tool", state: "waiting", owner: { kind: "message", id: "m_1" }, conversation: "main", squad: null },
  ...{ actor: "orchestrator", tool: "shell", summary: "run git push", command: "git push origin main", cwd: "/home/ada/shop" },
  ...{ path: null, diff: null, treeHash: null, reason: null, rule: null, createdAt: at(0), expiresAt: at(30) },
  ...{ decidedAt: null, decidedBy: null, scope: null, note: null },
  scopes: [
    { scope: "once", rule: null },
    { scope: "project", rule: "shell git push *: allow" },
  ],
} as unknown as Approval;
