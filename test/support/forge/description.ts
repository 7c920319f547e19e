import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Ajv, type ValidateFunction } from "ajv";

type Json = Record<string, unknown>;
interface Operation {
  parameters?: (Json & { $ref?: string; name?: string; in?: string })[];
  requestBody?: { content?: Record<string, { schema: Json }> };
  responses: Record<string, { $ref?: string; content?: Record<string, { schema: Json }> }>;
}
interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: Record<string, Record<string, Json>>;
}

/** GitHub's own description of its API, which the fake forge must follow. */
export function readGitHubDescription() {
  const folder = dirname(createRequire(import.meta.url).resolve("@octokit/openapi/package.json"));
  const document = JSON.parse(readFileSync(join(folder, "generated", "api.github.com.json"), "utf8")) as Document;
  const routes = Object.keys(document.paths)
    .sort((a, b) => a.split("{").length - b.split("{").length)
    .map((path) => ({ path, pattern: new RegExp(`^${path.replace(/\{[^}]+\}/g, "[^/]+")}$`) }));
  const ajv = new Ajv({ strict: false, validateFormats: false, logger: false });
  const checks = new Map<object, ValidateFunction>();

  const resolved = <T extends object>(node: T & { $ref?: string }): T => {
    if (node.$ref === undefined) return node;
    const at = node.$ref.slice(2).split("/");
    return resolved(at.reduce<unknown>((value, key) => (value as Json)[key.replaceAll("~1", "/")], document) as T);
  };

  /** A schema together with everything it refers to. */
  function whole(schema: Json): Json {
    const schemas: Record<string, Json> = {};
    const visit = (node: unknown): void => {
      if (Array.isArray(node)) for (const each of node) visit(each);
      if (typeof node !== "object" || node === null) return;
      const { $ref, nullable, enum: allowed } = node as { $ref?: unknown; nullable?: unknown; enum?: unknown[] };
      // The validator accepts only the listed values, so `null` must be one of them.
      if (nullable === true && allowed && !allowed.includes(null)) allowed.push(null);
      if (nullable === true && !("type" in node)) {
        const { nullable: _, ...other } = node as Json;
        for (const key of Object.keys(node)) delete (node as Json)[key];
        (node as Json).anyOf = [{ enum: [null] }, other];
      }
      const name = typeof $ref === "string" ? /^#\/components\/schemas\/(.+)$/.exec($ref)?.[1] : undefined;
      if (name !== undefined && !schemas[name]) {
        schemas[name] = document.components.schemas![name]!;
        visit(schemas[name]);
      }
      for (const value of Object.values(node)) visit(value);
    };
    visit(schema);
    return { ...schema, components: { schemas } };
  }

  function validatorOf(schema: Json): ValidateFunction {
    const validate = checks.get(schema) ?? ajv.compile(whole(schema));
    checks.set(schema, validate);
    return validate;
  }

  function check(what: string, schema: Json, value: unknown): void {
    const validate = validatorOf(schema);
    if (validate(value)) return;
    const wrong = validate.errors
      ?.slice(0, 5)
      .map((each) => `${each.instancePath} ${each.message} ${JSON.stringify(each.params)}`);
    throw new Error(`${what} is not what GitHub's description says: ${wrong?.join("; ")}`);
  }

  /** Fills in everything else that the schema requires. */
  function filled(given: Json, value: unknown, depth = 0): unknown {
    const schema = resolved(given as Json & { $ref?: string }) as Json & {
      required?: string[];
      properties?: Record<string, Json>;
    };
    const choice = (schema.oneOf ?? schema.anyOf) as Json[] | undefined;
    if (choice) {
      const all = choice.map((each) => ({ each, value: filled(each, value, depth) }));
      return (all.find((each) => validatorOf(each.each)(each.value)) ?? all[0])?.value;
    }
    const parts = schema.allOf as Json[] | undefined;
    if (parts) return parts.reduce((all, part) => filled(part, all, depth), value);
    if (value === null) return null;
    if (schema.type === "array") {
      const items = (value ?? []) as unknown[];
      return items.map((item) => filled(schema.items as Json, item, depth + 1));
    }
    if (schema.type === "object" || schema.properties) {
      const own = (value ?? {}) as Json;
      const names = new Set([...(schema.required ?? []), ...Object.keys(own)]);
      const entries = [...names].map((name) => {
        const property = schema.properties?.[name];
        return [name, property ? filled(property, own[name], depth + 1) : own[name]];
      });
      return Object.fromEntries(entries);
    }
    if (value !== undefined) return value;
    if (schema.nullable) return null;
    const [first] = (schema.enum as unknown[] | undefined) ?? [];
    if (first !== undefined) return first;
    if (schema.type === "integer" || schema.type === "number") return 1;
    return schema.type === "boolean" ? false : "x";
  }

  return {
    /** Finds the operation for a request. Throws if GitHub has none, because that is our mistake. */
    operation(method: string, path: string): Operation {
      const found = routes.find(({ pattern, path: each }) => pattern.test(path) && document.paths[each]?.[method.toLowerCase()]);
      const operation = found && document.paths[found.path]?.[method.toLowerCase()];
      if (!operation) throw new Error(`GitHub's description has no ${method} ${path}`);
      return operation;
    },
    checkRequest(operation: Operation, query: URLSearchParams, body: unknown): void {
      const known = (operation.parameters ?? []).map((each) => resolved(each)).filter((each) => each.in === "query");
      for (const name of query.keys())
        if (!known.some((each) => each.name === name)) throw new Error(`GitHub's description knows no parameter ${name}`);
      const schema = operation.requestBody?.content?.["application/json"]?.schema;
      if (schema) check("the request", schema, body);
      else if (body !== undefined) throw new Error("GitHub's description knows no body here");
    },
    /** Completes an answer and checks it. */
    answer(operation: Operation, status: number, value: unknown): unknown {
      const response = operation.responses[String(status)];
      if (!response) throw new Error(`GitHub's description knows no answer ${status} here`);
      const schema = resolved(response).content?.["application/json"]?.schema;
      if (!schema) return value;
      const whole = status < 400 ? filled(schema, value) : value;
      check(`the answer ${status}`, schema, whole);
      return whole;
    },
  };
}
export type GitHubDescription = ReturnType<typeof readGitHubDescription>;
