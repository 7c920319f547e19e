import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { packageRoot } from "../../src/lib/package-root.ts";

interface Description {
  paths: Record<string, Record<string, { responses: Record<string, { content?: Record<string, object> }> }>>;
}

/** Throws if an answer of the API does not match openapi.json. */
export type AnswerCheck = (method: string, path: string, status: number, answer: unknown) => void;

/** Creates a check whose schemas are compiled on first use. */
export function createAnswerCheck(): AnswerCheck {
  const checks = new Map<string, ValidateFunction>();
  let loaded: { description: Description; ajv: Ajv2020; routes: { route: string; pattern: RegExp }[] } | undefined;
  const load = () => {
    const description = JSON.parse(readFileSync(join(packageRoot, "dist", "openapi.json"), "utf8")) as Description;
    const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false });
    ajv.addSchema(closed(description), "api");
    const routes = Object.keys(description.paths)
      .sort((a, b) => a.split("{").length - b.split("{").length)
      .map((route) => ({ route, pattern: patternOf(route) }));
    return { description, ajv, routes };
  };
  return (method, path, status, answer) => {
    loaded ??= load();
    const { description, ajv, routes } = loaded;
    const [plain = ""] = path.split("?", 1);
    const route = routes.find(({ pattern }) => pattern.test(plain))?.route;
    const responses = route === undefined ? undefined : description.paths[route]?.[method.toLowerCase()]?.responses;
    if (!responses && status < 400) return;
    const name = responses?.[status] ? String(status) : `${Math.floor(status / 100)}XX`;
    if (responses && !responses[name]) throw new Error(`openapi.json knows no ${status} of ${method} ${route}`);
    const pointer = responses
      ? ["paths", route ?? "", method.toLowerCase(), "responses", name, "content", "application/json", "schema"]
      : ["components", "schemas", "Error"];
    const key = pointer.join(" ");
    const check = checks.get(key) ?? ajv.compile({ $ref: `api#/${pointer.map(escaped).join("/")}` });
    checks.set(key, check);
    if (check(answer)) return;
    const wrong = check.errors?.map((each) => `${each.instancePath} ${each.message} ${JSON.stringify(each.params)}`).join("; ");
    throw new Error(`the answer ${status} of ${method} ${plain} is not what openapi.json says: ${wrong}`);
  };
}

const escaped = (part: string) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"));

function patternOf(route: string): RegExp {
  const part = (text: string) => (text === "{path}" ? ".+" : text.startsWith("{") ? "[^/]+" : text);
  return new RegExp(`^${route.split("/").map(part).join("/")}$`);
}

/** Forbids undescribed fields: they are as wrong as missing ones. */
function closed<T>(node: T): T {
  if (Array.isArray(node)) return node.map(closed) as T;
  if (typeof node !== "object" || node === null) return node;
  const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, closed(value)]));
  if (copy.type === "object" && copy.properties && copy.additionalProperties === undefined) copy.additionalProperties = false;
  return copy as T;
}
