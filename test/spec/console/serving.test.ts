import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import { createApp, flattenPreset, type Preset } from "@portico/core";
import { agent } from "@portico/presets/agent";
import { local } from "@portico/presets/local";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { webConsole } from "@portico/console";
import { httpCall } from "../../harness/http-call.ts";
import { type PorticoProcess, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { root } from "../../rooms/repository.ts";

let service: PorticoProcess;
beforeAll(async () => {
  service = await startPortico();
});
afterAll(() => service[Symbol.asyncDispose]());

const call = (path: string, options: { method?: string; headers?: Record<string, string> } = {}) =>
  httpCall(service.url("agent"), { method: "GET", path, ...options });
const origin = (surface: string) => new URL(service.url(surface)).origin;
const scripts = () => readdirSync(join(root, "console/page/console")).filter((name) => name.endsWith(".js"));

describe("the page of the web console", () => {
  it("is served without a credential, and caches must revalidate it", async () => {
    const answer = await call("/");
    expect(answer.status).toBe(200);
    expect(answer.headers["content-type"]).toBe("text/html; charset=utf-8");
    expect(answer.headers["cache-control"]).toBe("no-cache");
    expect(await answer.text()).toContain("<title>Portico</title>");
  });

  it("may load its own files and call this process's listeners, and nothing else", async () => {
    const { headers } = await call("/");
    const policy = Object.fromEntries(
      headers["content-security-policy"]!.split("; ").map((directive) => [
        directive.split(" ")[0]!,
        directive.split(" ").slice(1),
      ]),
    );
    expect(policy).toMatchObject({
      "default-src": ["'none'"],
      "script-src": ["'self'"],
      "style-src": ["'self'"],
      "base-uri": ["'none'"],
      "form-action": ["'none'"],
      "frame-ancestors": ["'none'"],
      "require-trusted-types-for": ["'script'"],
    });
    expect(new Set(policy["connect-src"])).toEqual(new Set(["'self'", origin("proxy"), origin("workflow"), origin("agent")]));
    expect(JSON.stringify(policy)).not.toMatch(/unsafe|\*|data:/);
    expect(headers["x-content-type-options"]).toBe("nosniff");
    expect(headers["referrer-policy"]).toBe("no-referrer");
  });

  it("has no script and no style in it", async () => {
    const page = await (await call("/")).text();
    expect(page).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/);
  });

  it("is answered for HEAD without its body", async () => {
    const answer = await call("/", { method: "HEAD" });
    expect([answer.status, await answer.text()]).toEqual([200, ""]);
    expect(answer.headers["content-security-policy"]).toContain("default-src 'none'");
  });

  it("is not sent again to clients that have it", async () => {
    const etag = (await call("/")).headers["etag"]!;
    const again = await call("/", { headers: { "if-none-match": etag } });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    expect((await call("/", { headers: { "if-none-match": '"another"' } })).status).toBe(200);
  });
});

describe("the files of the web console", () => {
  it("are kept for ever: their names change with what is in them", async () => {
    const [script] = scripts();
    const answer = await call(`/console/${script}`);
    expect(answer.status).toBe(200);
    expect(answer.headers["content-type"]).toBe("text/javascript; charset=utf-8");
    expect(answer.headers["cache-control"]).toBe("public, max-age=31536000, immutable");
    expect(answer.headers["x-content-type-options"]).toBe("nosniff");
    expect(await answer.text()).toBe(readFileSync(join(root, "console/page/console", script!), "utf8"));
    const again = await call(`/console/${script}`, { headers: { "if-none-match": answer.headers["etag"]! } });
    expect(again.status).toBe(304);
  });

  it("are sent compressed to clients that accept it", async () => {
    const [script] = scripts();
    const plain = readFileSync(join(root, "console/page/console", script!), "utf8");
    for (const [accepts, coding] of [
      ["gzip, deflate, br", "gzip"],
      ["gzip;q=0, br", undefined],
      ["br", undefined],
    ] as const) {
      const answer = await call(`/console/${script}`, { headers: { "accept-encoding": accepts } });
      expect([answer.headers["content-encoding"], answer.headers["vary"]]).toEqual([coding, "accept-encoding"]);
      const body = coding === "gzip" ? gunzipSync(await answer.bytes()).toString() : await answer.text();
      expect(body).toBe(plain);
    }
  });

  it.each([
    "/console/nothing.js",
    "/console/..%2findex.html",
    "/console/..%2f..%2fpackage.json",
    "/console/%2e%2e%2fmanifest.json",
    "/console/..%5c..%5cpackage.json",
    "/console/.js",
    "/console/index.js.gz",
    "/console/",
    "/index.html",
    "/manifest.json",
  ])("nothing else is a file: %s", async (path) => {
    const answer = await call(path);
    expect(answer.status).toBe(404);
    expect(JSON.parse(await answer.text())).toHaveProperty("error");
  });
});

describe("where the web console is served", () => {
  const settings = async (config: object, preset: "local" | "agent") => {
    const { platformSchema } = await import("../../../presets/src/settings/platform.ts");
    const v = await import("valibot");
    const options = { settings: v.parse(platformSchema, { dataDir: "unused", ...config }), providers: [] };
    const built: Preset = preset === "local" ? local(options) : agent(options);
    return flattenPreset(built).plugins.some(({ name }) => name === "web-console");
  };

  it("local serves it, agent does not, and agent.console says otherwise", async () => {
    expect(await settings({}, "local")).toBe(true);
    expect(await settings({ agent: { console: false } }, "local")).toBe(false);
    expect(await settings({}, "agent")).toBe(false);
    expect(await settings({ agent: { console: true } }, "agent")).toBe(true);
  });

  it("where it is switched off, its address is unknown in the service's own words", async () => {
    await using plain = await startPortico({ args: ["agent"] });
    const answer = await fetch(`${plain.url("agent")}/`);
    expect([answer.status, await answer.json()]).toMatchObject([404, { code: "not_found" }]);
  });

  it("where it is not built, its page says how that is done", async () => {
    const folder = temporaryFolder();
    await using app = await createApp({
      name: "not-built",
      plugins: [webConsole({ urls: () => ({}), built: pathToFileURL(`${folder.path}/`) })],
    });
    const answer = await app.fetch(new Request("http://agent.test/"));
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining("npm run console")]);
    folder.remove();
  });
});

describe("GET /api/listeners", () => {
  const ask = (headers: Record<string, string>) => call("/api/listeners", { headers });

  it("returns the address of each surface to callers with a token", async () => {
    const { agentServiceToken } = JSON.parse(service.read("credentials.json")) as { agentServiceToken: string };
    const answer = await ask({ "x-agent-service-token": agentServiceToken });
    expect([answer.status, JSON.parse(await answer.text())]).toEqual([200, { listeners: service.ready.listeners }]);
  });

  it("refuses all other callers", async () => {
    expect((await ask({})).status).toBe(401);
    expect((await ask({ "x-agent-service-token": "wrong" })).status).toBe(401);
  });
});
