import { join } from "node:path";
import { createApp, type Preset } from "@portico/core";
import { agent } from "@portico/presets/agent";
import { local, type PlatformOptions, readPlatformOptions } from "@portico/presets/local";
import { proxy } from "@portico/presets/proxy";
import { workflow } from "@portico/presets/workflow";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../../harness/portico-process.ts";

const TOKENS = { owner: "owner-token-0123456789", scraper: "scraper-token-0123456789" };
const agentTokens = {
  tokens: [
    { token: TOKENS.owner, userId: "ada", role: "owner" as const },
    { token: TOKENS.scraper, role: "service" as const },
  ],
};
const presets: Readonly<Record<string, (options: PlatformOptions) => Preset>> = { local, proxy, workflow, agent };

describe.each(Object.entries(presets))("probes of the preset %s (open points 11)", (name, build) => {
  const open = async (folder: string, probes?: { listen: object }, isReady?: () => boolean) => {
    const keys = { dataDir: folder, autoProviders: false, log: { level: "silent" as const }, ...(probes && { probes }) };
    const agents = { ...agentTokens, agentsDir: join(folder, "agents") };
    const options = await readPlatformOptions({ ...keys, agent: agents }, { env: {} });
    return createApp(build({ ...options, isReady }));
  };

  it("are off until they have a listener", async () => {
    const folder = temporaryFolder();
    await using app = await open(folder.path);
    expect(app.surfaces).not.toContain("probes");
    expect(app.surfaces).toContain(name === "local" ? "agent" : name);
    folder.remove();
  });

  it("tell without a token whether the process lives and is ready, and with one what was measured", async () => {
    const folder = temporaryFolder();
    let isReady = true;
    await using app = await open(folder.path, { listen: {} }, () => isReady);
    const ask = (path: string, headers: Record<string, string> = {}) =>
      app.surface("probes").fetch(new Request(`http://localhost${path}`, { headers }));
    const json = async (path: string) => {
      const answer = await ask(path);
      return [answer.status, await answer.json()];
    };

    expect(app.surfaces.at(-1)).toBe("probes");
    expect(await json("/healthz")).toEqual([200, { status: "alive" }]);
    expect(await json("/readyz")).toEqual([200, { status: "ready" }]);
    isReady = false;
    expect(await json("/readyz")).toEqual([503, { status: "service_not_ready" }]);
    expect(await json("/metrics")).toEqual([401, { error: "unauthorized", code: "unauthorized" }]);
    expect(await json("/api/agents")).toEqual([404, { error: "Not found", code: "not_found" }]);

    for (const token of Object.values(TOKENS)) {
      const good: Record<string, string>[] = [{ "x-agent-service-token": token }, { authorization: `Bearer ${token}` }];
      for (const headers of good) {
        const metrics = await ask("/metrics", headers);
        expect([metrics.status, metrics.headers.get("content-type")]).toEqual([200, expect.stringContaining("text/plain")]);
        expect(await metrics.text()).toMatch(/http_server_request_duration_seconds_count\{.*"probes-probes\.ready"/);
      }
      const bad: Record<string, string>[] = [
        { authorization: `Bearer ${token}x` },
        { authorization: `Basic ${token}` },
        { "x-workflow-service-token": token },
      ];
      for (const headers of bad) expect((await ask("/metrics", headers)).status).toBe(401);
    }
    folder.remove();
  });
});
