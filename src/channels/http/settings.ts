import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import type { Engine } from "../../engine/port.ts";
import { type Config, parseConfig, SECRET_KEYS, updateConfig } from "../../lib/config.ts";
import type { LiveConfig } from "../../lib/live-config.ts";
import type { Emit } from "../../protocol/events.ts";
import { HttpError } from "./errors.ts";
import { answers, body } from "./shapes.ts";

export interface SettingsDeps {
  configPath: string;
  settings: LiveConfig;
  engine: Engine;
  emit: Emit;
}

const AnyConfig = z.record(z.string(), z.unknown());

export function settingsRoutes(app: OpenAPIHono, { configPath, settings, engine, emit }: SettingsDeps): void {
  const read = createRoute({
    method: "get",
    path: "/api/config",
    summary: "The config; of secrets only whether they are set",
    responses: answers(200, AnyConfig),
  });
  app.openapi(read, (context) => context.json(shown(settings.current()), 200));

  const change = createRoute({
    method: "patch",
    path: "/api/config",
    summary: "Changes some keys; null takes one out",
    request: { body: body(AnyConfig) },
    responses: answers(200, AnyConfig),
  });
  app.openapi(change, (context) => {
    const changes = Object.fromEntries(
      Object.entries(context.req.valid("json")).map(([key, value]) => [key, value ?? undefined]),
    );
    const known = parseable(changes, settings.current());
    if (known !== undefined) throw new HttpError(400, known);
    settings.replace(updateConfig(configPath, changes));
    emit({ type: "config.changed", data: { keys: Object.keys(changes) } });
    return context.json(shown(settings.current()), 200);
  });

  const models = createRoute({
    method: "get",
    path: "/api/models",
    summary: "The models that are available",
    responses: answers(200, z.object({ items: z.array(z.object({ id: z.string(), name: z.string() })) })),
  });
  app.openapi(models, async (context) => context.json({ items: await engine.models() }, 200));
}

/** The config without its secrets. */
function shown(config: Config): Record<string, unknown> {
  const copy: Record<string, unknown> = structuredClone(config);
  for (const path of SECRET_KEYS) {
    const [first = "", second] = path.split(".");
    const holder = second === undefined ? copy : copy[first];
    const key = second ?? first;
    if (typeof holder !== "object" || holder === null) continue;
    const values = holder as Record<string, unknown>;
    values[key] = { set: values[key] !== undefined && Object.keys(Object(values[key])).length > 0 };
  }
  return copy;
}

/** What is wrong with a change, without the path of the file it would go to. */
function parseable(changes: Record<string, unknown>, config: Config): string | undefined {
  try {
    const merged = Object.fromEntries(Object.entries({ ...config, ...changes }).filter(([, value]) => value !== undefined));
    parseConfig(merged, "config");
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
