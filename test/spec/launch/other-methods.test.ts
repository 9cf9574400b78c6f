import { flattenPreset, type RouteContract, ServiceError } from "@portico/core";
import { local, readPlatformOptions } from "@portico/presets/local";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { httpCall } from "../../harness/http-call.ts";
import { type PorticoProcess, startPortico } from "../../harness/portico-process.ts";

const NOT_ALLOWED = new ServiceError({ code: "method_not_allowed", status: 405, message: "Method not allowed" });
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"];
const TOKENS = { agent: "owner-token-of-methods", workflow: "service-token-of-methods" };

/** Every declared route of the preset `local`, straight from the contracts. */
const { plugins } = flattenPreset(local(await readPlatformOptions({ autoProviders: false }, { env: {} })));
const ROUTES = plugins.flatMap(({ name, spec }) =>
  Object.entries(spec.contract as Record<string, RouteContract>).map(([key, contract]) => ({ key: `${name}.${key}`, contract })),
);

/** The answer of a path to a method that no contract declares for it depends on its first route. */
const FIRST_OF_PATHS = [
  ...new Map(ROUTES.toReversed().map((each) => [`${each.contract.surface} ${each.contract.path}`, each])).values(),
];

const matches = (declared: string, path: string) => new RegExp(`^${declared.replaceAll(/:\w+/g, "[^/]+")}$`).test(path);

let service: PorticoProcess;
let headers: Readonly<Record<string, string>>;
beforeAll(async () => {
  service = await startPortico({
    config: {
      agent: { tokens: [{ token: TOKENS.agent, userId: "ada", role: "owner" }] },
      workflow: { token: TOKENS.workflow },
    },
  });
  headers = {
    "x-agent-service-token": TOKENS.agent,
    "x-workflow-service-token": TOKENS.workflow,
    "x-api-key": await service.token("demo"),
  };
});
afterAll(() => service?.[Symbol.asyncDispose]());

/** The token of a session, for calls that only sessions may make. */
async function signIn(): Promise<string> {
  const origin = new URL(service.url("agent")).origin;
  const asked = { method: "POST", headers: { "x-agent-service-token": TOKENS.agent } };
  const link = await httpCall(origin, { path: "/api/sign-in-links", ...asked });
  const code = ((await link.json()) as { url: string }).url.split("/").at(-1);
  const session = await httpCall(origin, {
    path: "/api/sign-in",
    method: "POST",
    headers: { "content-type": "application/json", origin },
    body: JSON.stringify({ code }),
  });
  return ((await session.json()) as { token: string }).token;
}

const ask = async (surface: string, method: string, path: string, own: Readonly<Record<string, string>> = {}) => {
  const answer = await httpCall(new URL(service.url(surface)).origin, { method, path, headers: { ...headers, ...own } });
  return { status: answer.status, allow: answer.headers.allow, body: (await answer.json()) as unknown };
};

describe("a method that a path does not have", () => {
  it.each(FIRST_OF_PATHS)("is 405 in the form of the area's errors, with the methods that it has: $key", async ({ contract }) => {
    const { surface, envelope, auth } = contract;
    const path = contract.path.replaceAll(/:\w+/g, "some-id");
    const declared = ROUTES.filter(({ contract: each }) => each.surface === surface && matches(each.path, path));
    const methods = declared.map(({ contract: { method } }) => method as string);
    const own: Record<string, string> = auth === "session" ? { "x-agent-service-token": await signIn() } : {};
    for (const method of METHODS.filter((each) => !methods.includes(each))) {
      const { status, allow, body } = await ask(surface, method, path, own);
      // 7.4 in the order of open points 5: the trigger's agent is looked for first.
      if (path.startsWith("/api/webhook/")) expect([method, status, body]).toEqual([method, 404, { error: "Agent not found" }]);
      else {
        expect([method, status, body]).toEqual([method, 405, envelope(NOT_ALLOWED, { method, path })]);
        expect(allow?.split(", ")).toEqual(expect.arrayContaining(methods));
      }
    }
  });
});

describe("PUT /api/workflow/:id (4.2)", () => {
  it.each(["greet", "webhook", "events", "run", "runs", "schema", "schedules", "events%20", "%65vents"])(
    "is retired for every id: %s",
    async (id) => {
      expect(await ask("workflow", "PUT", `/api/workflow/${id}`)).toMatchObject({
        status: 410,
        body: { code: "definition_endpoint_retired" },
      });
    },
  );

  it("is named in Allow where a fixed path lacks a method", async () => {
    const { status, allow } = await ask("workflow", "DELETE", "/api/workflow/events");
    expect([status, allow]).toEqual([405, "GET, PUT, HEAD"]);
  });
});

it("a run with the name of a fixed path is looked for with the methods that the fixed path lacks", async () => {
  const answer = await httpCall(service.url("agent"), {
    method: "PATCH",
    path: "/api/runs/search",
    headers: { ...headers, "content-type": "application/json" },
    body: '{"title":"x"}',
  });
  expect([answer.status, await answer.json()]).toEqual([404, { error: "Run not found: search", code: "run_not_found" }]);
});
