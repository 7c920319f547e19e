import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import { pictureTypeOf } from "../../lib/file-type.ts";
import { Attachment } from "../../protocol/messages.ts";
import type { Attachments } from "../../store/attachments.ts";
import { HttpError } from "./errors.ts";
import { isModestForm } from "./form.ts";
import { answers } from "./shapes.ts";

export interface FileRoutesDeps {
  attachments: Pick<Attachments, "add" | "find" | "read">;
}

const MAX_BYTES = 10_000_000;
const Binary = z.string().meta({ format: "binary" });

/** Whatever its content, browsers show a file as a picture or save it; they never run it. */
const INERT = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; sandbox",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "private, max-age=31536000, immutable",
};

/** Files that people attach to messages. */
export function fileRoutes(app: OpenAPIHono, { attachments }: FileRoutesDeps): void {
  const add = createRoute({
    method: "post",
    path: "/api/files",
    summary: "Takes a file of at most 10 MB, as a form or as it is, to be attached to a message; kept for a day without one",
    request: {
      headers: z.object({ "x-filename": z.string().optional().describe("its name, percent-encoded, where it comes as it is") }),
      body: {
        required: true,
        content: {
          "multipart/form-data": { schema: z.object({ file: Binary }) },
          "*/*": { schema: Binary },
        },
      },
    },
    responses: answers(201, Attachment),
  });
  // The handler reads the body itself; validation would read it a second time.
  app.openAPIRegistry.registerPath(add);
  app.post(add.path, async (context) => {
    const { name, bytes } = await fileIn(context);
    if (bytes.length === 0) throw new HttpError(400, "The file is empty.");
    if (bytes.length > MAX_BYTES) throw new HttpError(413, "A file is at most 10 MB.");
    return context.json(attachments.add(name, bytes), 201);
  });

  const get = createRoute({
    method: "get",
    path: "/api/files/{id}",
    summary: "A file as it was sent",
    request: { params: z.object({ id: z.string() }) },
    responses: { 200: { description: "Its bytes", content: { "application/octet-stream": { schema: Binary } } } },
  });
  app.openAPIRegistry.registerPath(get);
  app.get("/api/files/:id", (context) => {
    const file = attachments.find(context.req.param("id"));
    const bytes = file && attachments.read(file.id);
    if (!bytes) throw new HttpError(404, "There is no file with this id.");
    const picture = pictureTypeOf(bytes);
    const shown = picture ? "inline" : "attachment";
    return context.body(new Uint8Array(bytes), 200, {
      ...INERT,
      "content-type": picture ?? "application/octet-stream",
      "content-disposition": `${shown}; filename*=UTF-8''${encodeName(file.name)}`,
    });
  });
}

async function fileIn(context: Context): Promise<{ name: string; bytes: Uint8Array }> {
  if (!/^multipart\/form-data\b/i.test(context.req.header("content-type") ?? "")) {
    const bytes = new Uint8Array(await context.req.arrayBuffer());
    return { name: decodeName(context.req.header("x-filename") ?? ""), bytes };
  }
  const unreadable = () =>
    new HttpError(400, "The form cannot be read. Send one file as multipart/form-data, or the file as it is.");
  const type = context.req.header("content-type") ?? "";
  const body = Buffer.from(await context.req.arrayBuffer());
  if (!isModestForm(type, body)) throw unreadable();
  const form = await new Response(body, { headers: { "content-type": type } }).formData().catch(() => {
    throw unreadable();
  });
  const files = [...form.values()].filter((value) => typeof value !== "string");
  const [file] = files;
  if (!file || files.length > 1) throw new HttpError(400, "Send exactly one file in a form.");
  return { name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) };
}

function decodeName(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    // It was not encoded.
    return name;
  }
}

/** Encodes a name as in RFC 8187, including the characters that encodeURIComponent leaves but a header must not contain. */
const encodeName = (name: string): string =>
  encodeURIComponent(name).replace(/['()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
