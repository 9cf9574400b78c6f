import { randomIds } from "@portico/adapters/ids/random";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { memoryRecords } from "@portico/adapters/records/memory";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { createApp, createSystemClock, defineAdapter, ports, Secret } from "@portico/core";
import { modelProxy } from "@portico/plugins/model-proxy";
import { createSafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import { expect, it } from "vitest";
import { openAdapter } from "../conformance/open-adapter.ts";
import { CALLERS, expectError } from "../harness/callers.ts";
import { startGateway } from "../harness/gateway.ts";
import { httpCall } from "../harness/http-call.ts";
import { type Members, serveMembers } from "../harness/members.ts";

const PROCESSES = 3;

it("a call that comes back to a cluster is refused when it has passed every process", async () => {
  await using gateway = await startGateway();
  const { members, token } = await startProxies(gateway.baseUrl);
  const served = await serveMembers(members, "proxy");
  try {
    gateway.leadTo(`${served.url}/v1`, token);
    const { path, request } = CALLERS.messages;
    const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
    await expectError(await httpCall(served.url, { path, headers, body: JSON.stringify(request()) }), 508, "messages");
    expect(gateway.calls()).toBeLessThanOrEqual(PROCESSES);
  } finally {
    served.stop();
    await members.close();
    await served.end();
  }
});

/** Model proxies over the same records, with a provider that leads to this address. */
async function startProxies(baseUrl: string): Promise<{ readonly members: Members; readonly token: string }> {
  const records = await openAdapter(memoryRecords());
  const secrets = await openAdapter(memorySecrets());
  const stores = [
    defineAdapter({ name: "records/shared", port: ports.records, needs: {}, open: () => records.port })(undefined),
    defineAdapter({ name: "secrets/shared", port: ports.secrets, needs: {}, open: () => secrets.port })(undefined),
  ];
  const open = () =>
    createApp({
      name: "proxy-of-a-cluster",
      adapters: [
        ...stores,
        randomIds(),
        messagesHttp({ id: "main", type: "portico", models: ["echo-large"], baseUrl, credential: new Secret("any") }),
      ],
      plugins: [modelProxy({ ownTokens: async () => [], instances: ["main"] })],
    });
  const apps = await Promise.all(Array.from({ length: PROCESSES }, open));
  const [app] = apps;
  const close = async () => void (await Promise.all(apps.map((each) => each.close())));
  const tokens = createSafeTokens({
    ...{ records: records.port, secrets: secrets.port },
    ...{ clock: createSystemClock(), ids: app!.port(ports.ids) },
  });
  const { token } = await tokens.issue({ providerId: "main" });
  return { members: { apps, app: app!, close }, token: token.reveal() };
}
