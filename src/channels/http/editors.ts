import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import type { EditorTexts } from "../../orchestrator/editor-texts.ts";
import { TerminalOrders, TerminalReport } from "../../protocol/editor-terminal.ts";
import { Conversation } from "../../protocol/messages.ts";
import { FormAnswer } from "../../protocol/person-form.ts";
import { answers, body } from "./shapes.ts";

export interface EditorRoutesDeps {
  editorTexts: Pick<EditorTexts, "opened" | "closed" | "answer" | "reportTerminal">;
}

const Offers = z.strictObject({
  texts: z.boolean().default(true),
  forms: z.boolean().default(false),
  terminals: z.boolean().default(false),
});

/** The unsaved texts and terminals of editors, and the people at them. */
export function editorRoutes(app: OpenAPIHono, { editorTexts }: EditorRoutesDeps): void {
  const path = "/api/conversations/{name}/editor";
  const params = z.object({ name: Conversation });
  const Open = z.object({ open: z.boolean() });

  const open = createRoute({
    method: "put",
    path,
    summary:
      "Says that an editor has the conversation open and answers `editor.asked`: with the texts that it holds, with forms and in its terminal",
    request: { params, body: { ...body(Offers), required: false } },
    responses: answers(200, Open),
  });
  app.openapi(open, (context) => {
    // An editor's process that is older than the daemon says nothing and holds texts.
    const { texts = true, forms = false, terminals = false } = context.req.valid("json");
    editorTexts.opened(context.req.valid("param").name, { texts, forms, terminals });
    return context.json({ open: true }, 200);
  });

  const close = createRoute({
    method: "delete",
    path,
    summary: "Says that the editor has closed the conversation",
    request: { params },
    responses: answers(200, Open),
  });
  app.openapi(close, (context) => {
    editorTexts.closed(context.req.valid("param").name);
    return context.json({ open: false }, 200);
  });

  const answer = createRoute({
    method: "post",
    path: `${path}/{ask}`,
    summary:
      "What an editor answers to `editor.asked`: its text of the file, null where it holds none, or the form as it was filled in",
    request: {
      params: params.extend({ ask: z.string().max(100) }),
      body: body(z.union([z.strictObject({ text: z.string().nullable() }), FormAnswer])),
    },
    responses: answers(200, z.object({ taken: z.boolean() })),
  });
  app.openapi(answer, (context) => {
    const { name, ask } = context.req.valid("param");
    const given = context.req.valid("json");
    const answer = "text" in given ? { text: given.text ?? undefined } : given;
    return context.json({ taken: editorTexts.answer(name, ask, answer) }, 200);
  });

  const terminal = createRoute({
    method: "post",
    path: `${path}/{ask}/terminal`,
    summary:
      "What an editor's process says of a command in its terminal; the first that says anything is given the command to run",
    request: { params: params.extend({ ask: z.string().max(100) }), body: body(TerminalReport) },
    responses: answers(200, TerminalOrders),
  });
  app.openapi(terminal, (context) => {
    const { name, ask } = context.req.valid("param");
    return context.json(editorTexts.reportTerminal(name, ask, context.req.valid("json")), 200);
  });
}
