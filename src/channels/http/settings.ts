import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import type { Engine } from "../../engine/port.ts";
import { type Config, configWith, parseConfig, updateConfig } from "../../home/config.ts";
import { withoutSecrets } from "../../home/config-secrets.ts";
import { configSources } from "../../home/config-sources.ts";
import type { LiveConfig } from "../../home/live-config.ts";
import { kindsIn } from "../../protocol/budgets.ts";
import type { Emit } from "../../protocol/events.ts";
import type { BudgetRoutesDeps } from "./budgets.ts";
import { configHash, configSchema, withSecretsOf, writtenConfig } from "./config-file.ts";
import { HttpError } from "./errors.ts";
import { answers, body } from "./shapes.ts";

export interface SettingsDeps {
  configPath: string;
  /** Some variables override keys of the file. */
  env: NodeJS.ProcessEnv;
  settings: LiveConfig;
  engine: Engine;
  /** Rejects a configuration with an address that the next start could not listen on. */
  checkAddress: (config: Config) => Promise<void>;
  budgets: BudgetRoutesDeps["budgets"];
  emit: Emit;
}

/** The keys that define where the daemon listens. */
const ADDRESS_KEYS = ["host", "port", "allowRemote"];
const AnyConfig = z.record(z.string(), z.unknown());
const ConfigFile = z.object({
  hash: z.string(),
  written: AnyConfig,
  schema: AnyConfig,
  /** The source of each key: `config.json` or the name of a variable. */
  sources: z.record(z.string(), z.string()),
});

export function settingsRoutes(app: OpenAPIHono, deps: SettingsDeps): void {
  const { configPath, env, settings, engine, checkAddress, budgets, emit } = deps;
  const read = createRoute({
    method: "get",
    path: "/api/config",
    summary: "The config; of secrets only whether they are set",
    responses: answers(200, AnyConfig),
  });
  app.openapi(read, (context) => context.json(withoutSecrets(settings.current()), 200));

  const change = createRoute({
    method: "patch",
    path: "/api/config",
    summary: "Changes some keys; null takes one out. With if-match, 409 where the file is no longer what that hash says",
    request: { headers: z.object({ "if-match": z.string().max(100).optional() }), body: body(AnyConfig) },
    responses: answers(200, AnyConfig),
  });
  app.openapi(change, async (context) => {
    const wanted = withSecretsOf(context.req.valid("json"), configPath);
    const changes = Object.fromEntries(Object.entries(wanted).map(([key, value]) => [key, value ?? undefined]));
    const known = parseable(changes, settings.current());
    if (known !== undefined) throw new HttpError(400, known);
    if (ADDRESS_KEYS.some((key) => key in changes)) await checkAddress(configWith(configPath, changes));
    const seen = context.req.valid("header")["if-match"];
    if (seen !== undefined && seen !== configHash(configPath))
      throw new HttpError(409, "config.json was changed meanwhile. Load it again, and make your change to what it says now.");
    settings.replace(updateConfig(configPath, changes));
    if ("budgets" in changes) budgets.limitsChanged({ set: kindsIn(changes.budgets) });
    emit({ type: "config.changed", data: { keys: Object.keys(changes) } });
    return context.json(withoutSecrets(settings.current()), 200);
  });

  const file = createRoute({
    method: "get",
    path: "/api/config/file",
    summary:
      "What config.json itself says, its hash, what every key may be, and where each that is not at its default comes from",
    responses: answers(200, ConfigFile),
  });
  app.openapi(file, (context) => {
    const described = { hash: configHash(configPath), written: writtenConfig(configPath), schema: configSchema() };
    return context.json({ ...described, sources: configSources(configPath, env) }, 200);
  });

  const models = createRoute({
    method: "get",
    path: "/api/models",
    summary: "The models that are available",
    responses: answers(200, z.object({ items: z.array(z.object({ id: z.string(), name: z.string() })) })),
  });
  app.openapi(models, async (context) => context.json({ items: await engine.models() }, 200));
}

/** What is wrong with a change, without the path of the file. */
function parseable(changes: Record<string, unknown>, config: Config): string | undefined {
  try {
    const merged = Object.fromEntries(Object.entries({ ...config, ...changes }).filter(([, value]) => value !== undefined));
    parseConfig(merged, "config");
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
