import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { FoundSkill, Skill } from "../../protocol/skills.ts";
import type { Skills } from "../../skills/open.ts";
import { answers, body } from "./shapes.ts";

const Slug = z.object({ slug: z.string() });
const SkillList = z.object({ items: z.array(Skill) });

export function skillRoutes(app: OpenAPIHono, { skills }: { skills: Skills }): void {
  const list = createRoute({
    method: "get",
    path: "/api/skills",
    summary: "The installed skills",
    responses: answers(200, SkillList),
  });
  app.openapi(list, (context) => context.json({ items: skills.list() }, 200));

  const add = createRoute({
    method: "post",
    path: "/api/skills",
    summary: "Installs every skill of a git repository",
    request: { body: body(z.strictObject({ repoUrl: z.string().min(1).max(2_000), enable: z.boolean().default(false) })) },
    responses: answers(201, SkillList),
  });
  app.openapi(add, async (context) => {
    const { repoUrl, enable } = context.req.valid("json");
    return context.json({ items: await skills.add(repoUrl, { enable, local: true }) }, 201);
  });

  const search = createRoute({
    method: "get",
    path: "/api/skills/search",
    summary: "Searches the skills registry",
    request: { query: z.object({ q: z.string().min(1, "Say what kind of skill to search for.").max(200) }) },
    responses: answers(200, z.object({ items: z.array(FoundSkill) })),
  });
  app.openapi(search, async (context) => context.json({ items: await skills.search(context.req.valid("query").q) }, 200));

  const remove = createRoute({
    method: "delete",
    path: "/api/skills/{slug}",
    summary: "Removes a skill",
    request: { params: Slug },
    responses: answers(200, Skill),
  });
  app.openapi(remove, (context) => context.json(skills.remove(context.req.valid("param").slug), 200));

  const text = createRoute({
    method: "get",
    path: "/api/skills/{slug}",
    summary: "A skill and the text the model would read",
    request: { params: Slug },
    responses: answers(200, z.object({ skill: Skill, text: z.string() })),
  });
  app.openapi(text, async (context) => context.json(await skills.show(context.req.valid("param").slug), 200));

  const enable = createRoute({
    method: "post",
    path: "/api/skills/{slug}/enable",
    summary: "Switches a skill on, if it still is what the hash says that a person was shown",
    request: { params: Slug, query: z.object({ hash: z.string().max(100).optional() }) },
    responses: answers(200, Skill),
  });
  app.openapi(enable, (context) =>
    context.json(skills.enable(context.req.valid("param").slug, context.req.valid("query").hash), 200),
  );

  const disable = createRoute({
    method: "post",
    path: "/api/skills/{slug}/disable",
    summary: "Switches a skill off",
    request: { params: Slug },
    responses: answers(200, Skill),
  });
  app.openapi(disable, (context) => context.json(skills.disable(context.req.valid("param").slug), 200));
}
