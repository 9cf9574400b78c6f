import { readFileSync } from "node:fs";
import { join } from "node:path";
import { auditWriter, createApp, createInstanceSessions, CREDENTIAL_PREFIXES, ports, type Secret } from "@portico/core";
import { createSafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import { createSignInLinks } from "@portico/console/sign-in";
import { createGrants } from "@portico/plugins/workflow-service/grants";
import { local, readPlatformOptions } from "@portico/presets/local";
import { expect, it } from "vitest";
import { CALLERS } from "../../harness/callers.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { createWebhookSecrets } from "../../../plugins/src/agent-webhook/webhook-secrets.ts";
import { createApprovalTokens, createCallbackTokens } from "../../../plugins/src/workflow-service/access/run-tokens.ts";
import { createShortLivedTokens } from "../../../plugins/src/workflow-service/access/service-access.ts";

const CONFIGURED = "a-member's-token-of-the-settings";

it("the proxy forwards no credential of any kind, made by the instance or configured (5)", async () => {
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
      signing: app.port(ports.signing),
    };
    const { token } = await createSafeTokens(given).issue({ providerId: "main" });
    const grants = createGrants(given);
    const by = { role: "owner" as const };
    const webhooks = createWebhookSecrets({ ...given, audit: auditWriter(undefined, given.records) });
    const made: Record<keyof typeof CREDENTIAL_PREFIXES, string | Secret | undefined> = {
      agentToken: agentServiceToken,
      workflowToken: workflowServiceToken,
      shortLivedWorkflowToken: (await createShortLivedTokens(given).issue()).token,
      session: (await createInstanceSessions(given).issue()).token,
      signInCode: (await createSignInLinks(given).issue()).url.split("/").at(-1),
      safeToken: token,
      webhookSecret: await webhooks.makeFirst("helper", { by }),
      executionGrant: (await grants.issue({ workflowId: "w" })).executionGrantId,
      editingGrant: (await grants.issue({ workflowId: "w", edits: true })).executionGrantId,
      approvalLink: await createApprovalTokens(given.signing).issue({ runId: "r", nodeId: "n", expiresAt: 1 }),
      callback: await createCallbackTokens(given.signing).issue({ runId: "r", nodeId: "n", attempt: 1, expiresAt: 1 }),
    };
    const credentials = Object.entries(made).map(([kind, value]) => {
      const text = typeof value === "object" ? value.reveal() : value!;
      expect(text.startsWith(CREDENTIAL_PREFIXES[kind as keyof typeof CREDENTIAL_PREFIXES])).toBe(true);
      return text;
    });
    for (const own of [...credentials, CONFIGURED]) {
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
