import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PorticoProcess, startPortico } from "../../harness/portico-process.ts";

const PATHS = { proxy: "/models", workflow: "/api/workflows" } as const;

let service: PorticoProcess;
beforeAll(async () => {
  service = await startPortico({ config: { workflow: { allowedOrigins: ["https://desk.example"] } } });
});
afterAll(() => service[Symbol.asyncDispose]());

const consoleOrigin = () => new URL(service.url("agent")).origin;
const call = (surface: keyof typeof PATHS, origin?: string, init: RequestInit = {}) =>
  fetch(service.url(surface) + PATHS[surface], { ...init, headers: { ...(origin && { origin }), ...(init.headers as object) } });

describe.each(["proxy", "workflow"] as const)("pages of the console call surface %s of a local preset", (surface) => {
  it("its preflight is answered without a credential", async () => {
    const answer = await call(surface, consoleOrigin(), {
      method: "OPTIONS",
      headers: { "access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type" },
    });
    expect(answer.status).toBe(204);
    expect(answer.headers.get("access-control-allow-origin")).toBe(consoleOrigin());
    expect(answer.headers.get("access-control-allow-headers")).toBe("authorization,content-type");
    expect(answer.headers.get("access-control-allow-credentials")).toBeNull();
  });

  it("its calls still need the surface's own token, and may read the refusal", async () => {
    const answer = await call(surface, consoleOrigin());
    expect(answer.status).toBe(401);
    expect(answer.headers.get("access-control-allow-origin")).toBe(consoleOrigin());
  });

  it.each([
    ["a foreign origin", () => "https://evil.example"],
    ["no origin of its own", () => "null"],
    ["the console's host by another name", () => consoleOrigin().replace("127.0.0.1", "localhost")],
    ["another port of its host", () => "http://127.0.0.1:1"],
    ["another scheme", () => consoleOrigin().replace("http:", "https:")],
  ])("a page with %s may read nothing", async (_name, origin) => {
    const answer = await call(surface, origin());
    // The proxy's callers are programs, and extensions of browsers name an origin: they need a token, as everybody does.
    expect(answer.status).toBe(surface === "proxy" ? 401 : 403);
    expect(answer.headers.get("access-control-allow-origin")).toBeNull();
    const preflight = { method: "OPTIONS", headers: { "access-control-request-method": "POST" } };
    expect((await call(surface, origin(), preflight)).headers.get("access-control-allow-origin")).toBeNull();
  });

  it("requests without an origin are unaffected", async () => {
    const answer = await call(surface);
    expect(answer.status).toBe(401);
    expect(answer.headers.get("access-control-allow-origin")).toBeNull();
    expect(answer.headers.get("vary")).toBeNull();
  });
});

it("origins of the settings stay allowed", async () => {
  expect((await call("workflow", "https://desk.example")).headers.get("access-control-allow-origin")).toBe(
    "https://desk.example",
  );
});

it("where the console is switched off, its origin is a foreign one", async () => {
  await using plain = await startPortico({ config: { agent: { console: false } } });
  const origin = new URL(plain.url("agent")).origin;
  const answer = await fetch(`${plain.url("workflow")}/api/workflows`, { headers: { origin } });
  expect(answer.status).toBe(403);
});
