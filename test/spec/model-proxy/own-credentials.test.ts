import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createApp, ports } from "@portico/core";
import { createSafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import { local, readPlatformOptions } from "portico/local";
import { expect, it } from "vitest";
import { CALLERS } from "../../harness/callers.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";

const CONFIGURED = "a-member's-token-of-the-settings";

it("the presets tell the proxy every token of the agent and workflow services, configured or made at the start (5)", async () => {
  const folder = temporaryFolder();
  await using upstream = await startFakeUpstream();
  try {
    const config = {
      dataDir: folder.path,
      log: { level: "silent" as const },
      providers: [{ id: "main", protocol: "messages" as const, baseUrl: upstream.baseUrl, models: ["echo-large"] }],
      agent: { agentsDir: folder.path, tokens: [{ token: CONFIGURED, userId: "ann", role: "member" as const }] },
      workflow: { definitionsDir: folder.path },
    };
    await using app = await createApp(local(await readPlatformOptions(config, { env: {} })));
    const { agentServiceToken, workflowServiceToken } = JSON.parse(
      readFileSync(join(folder.path, "credentials.json"), "utf8"),
    ) as Record<string, string>;
    const given = {
      records: app.port(ports.records),
      secrets: app.port(ports.secrets),
      clock: app.port(ports.clock),
      ids: app.port(ports.ids),
    };
    const { token } = await createSafeTokens(given).issue({ providerId: "main" });
    for (const own of [agentServiceToken, workflowServiceToken, CONFIGURED]) {
      const { path, request } = CALLERS.messages;
      const response = await app.surface("proxy").fetch(
        new Request(`http://proxy.test${path}?beta=true&key=${own}`, {
          method: "POST",
          headers: { "content-type": "application/json", "x-api-key": token.reveal(), "x-other": `Bearer ${own}` },
          body: JSON.stringify(request()),
        }),
      );
      expect(response.status).toBe(200);
      await response.text();
      const arrived = upstream.requests.at(-1)!;
      expect(new URL(arrived.url, "http://x").search).toBe("?beta=true");
      expect(arrived.rawHeaders.join("\n")).not.toContain(own);
    }
  } finally {
    folder.remove();
  }
});
