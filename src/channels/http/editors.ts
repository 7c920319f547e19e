import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import type { EditorTexts } from "../../orchestrator/editor-texts.ts";
import { Conversation } from "../../protocol/messages.ts";
import { answers, body } from "./shapes.ts";

export interface EditorRoutesDeps {
  editorTexts: Pick<EditorTexts, "opened" | "closed" | "answer">;
}

/** The unsaved texts of editors. */
export function editorRoutes(app: OpenAPIHono, { editorTexts }: EditorRoutesDeps): void {
  const path = "/api/conversations/{name}/editor";
  const params = z.object({ name: Conversation });
  const Open = z.object({ open: z.boolean() });

  const open = createRoute({
    method: "put",
    path,
    summary: "Says that an editor has the conversation open and answers `editor.asked` with the texts that it holds",
    request: { params },
    responses: answers(200, Open),
  });
  app.openapi(open, (context) => {
    editorTexts.opened(context.req.valid("param").name);
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
    summary: "The text that an editor holds of a file, by what `editor.asked` named; null where it holds none",
    request: {
      params: params.extend({ ask: z.string().max(100) }),
      body: body(z.strictObject({ text: z.string().nullable() })),
    },
    responses: answers(200, z.object({ taken: z.boolean() })),
  });
  app.openapi(answer, (context) => {
    const { name, ask } = context.req.valid("param");
    const { text } = context.req.valid("json");
    return context.json({ taken: editorTexts.answer(name, ask, text ?? undefined) }, 200);
  });
}
