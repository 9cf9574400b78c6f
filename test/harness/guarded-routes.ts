import type { Contract, RouteContract } from "@portico/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ALLOWED_ORIGIN, type AgentService, TOKENS } from "./agent-app.ts";

export interface GuardedArea {
  readonly contract: Contract;
  /** The guard that asks for the token: routes with it are tested. */
  readonly guard: string;
  /** The values of path parameters, by name. */
  readonly parameters: Readonly<Record<string, string>>;
  /** The whole body of a 401. */
  readonly unauthorized: object;
  readonly start: () => Promise<AgentService>;
}

/** Routes of an area of the agent service, read from its contract, so that new routes are tested without a change of the tests. */
export function routesOf({ contract, parameters }: Pick<GuardedArea, "contract" | "parameters">) {
  return Object.entries(contract as Record<string, RouteContract>).map(([key, { method, path, auth, body }]) => ({
    ...{ key, method, auth, hasBody: body !== undefined },
    path: path.replace(/:(\w+)/g, (_all, name: string) => parameters[name] ?? `no-${name}`),
  }));
}

/** Tests that calls without the token are refused, and calls of pages of a foreign origin even with it. */
export function guardedRoutes(area: GuardedArea): void {
  const routes = routesOf(area).filter(({ auth }) => auth === area.guard);
  let service: AgentService;
  beforeAll(async () => {
    service = await area.start();
  });
  afterAll(() => service.close());

  it("there are guarded routes", () => expect(routes).not.toEqual([]));

  describe.each(routes)("$method $path", ({ method, path, hasBody }) => {
    it.each([
      ["no token", {}],
      ["an empty token", { "x-agent-service-token": "" }],
      ["a wrong token", { "x-agent-service-token": "wrong" }],
      ["a token that is nearly right", { "x-agent-service-token": TOKENS.owner.slice(0, -1) }],
      ["the token in another header", { authorization: `Bearer ${TOKENS.owner}` }],
      ["the token twice", { "x-agent-service-token": [TOKENS.owner, TOKENS.owner] }],
    ])("401 unauthorized with %s", async (_what, headers) => {
      const reply = await service.raw({
        method,
        path,
        headers: { ...headers, ...(hasBody && { "content-type": "application/json" }) },
        ...(hasBody && { body: "{}" }),
      });
      expect([reply.status, await reply.json()]).toEqual([401, area.unauthorized]);
    });

    it("403 origin_not_allowed from a foreign page, before the token is looked at; an allowed one goes on", async () => {
      for (const holder of ["owner", undefined] as const) {
        const foreign = await service.call(holder, method, path, undefined, { origin: "https://evil.example" });
        expect([foreign.status, foreign.body.error]).toEqual([403, "origin_not_allowed"]);
      }
      const friend = await service.call(undefined, method, path, hasBody ? {} : undefined, { origin: ALLOWED_ORIGIN });
      expect([friend.status, friend.headers["access-control-allow-origin"]]).toEqual([401, ALLOWED_ORIGIN]);
    });
  });
}
