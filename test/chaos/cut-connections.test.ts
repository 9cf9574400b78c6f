import { setTimeout as sleep } from "node:timers/promises";
import { connectAgent } from "@portico/client";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type AgentService, startAgentService, TOKENS } from "../harness/agent-app.ts";
import { openBrokenLine } from "../harness/broken-line.ts";
import { cutAgainAndAgain, sayMany } from "../harness/cut-clients.ts";
import { clientKinds } from "../harness/socket-host.ts";

const CUTS = process.env.PORTICO_LONG ? 1_000 : 40;
/** Our client waits at least a second before it reconnects, as Socket.IO does by default. */
const OWN_CUTS = process.env.PORTICO_LONG ? 50 : 2;

let service: AgentService;
beforeAll(async () => {
  // If the connection breaks during a change of transports, Socket.IO's client waits for a ping.
  service = await startAgentService({ realtime: { pingIntervalMs: 500, pingTimeoutMs: 500 } });
  sayMany(service);
});
afterAll(() => service.close());

it.each(Object.entries(clientKinds))(
  `a client of Socket.IO's own, ${"%s"}, hears every event once, and in order, over ${CUTS} cuts`,
  async (_kind, transports) => {
    const outcome = await cutAgainAndAgain(service, { transports, cuts: CUTS, clients: 4, patienceMs: 20_000 });
    expect(outcome).toMatchObject({ lost: [], doubled: [], disordered: [], unrecovered: 0 });
    expect(outcome.cuts).toBeGreaterThanOrEqual(CUTS);
  },
  60_000 + CUTS * 200,
);

it.each(Object.entries(clientKinds))(
  `our own client, ${"%s"}, yields every message once, and in order, over ${OWN_CUTS} cuts`,
  async (_kind, transports) => {
    await using line = await openBrokenLine(service.url);
    await using client = connectAgent({ baseURL: line.url, token: TOKENS.owner, transports });
    let cuts = 0;
    const isOver = () => cuts >= OWN_CUTS;
    const cutting = (async () => {
      for (; !isOver(); cuts++) {
        await client.connected();
        await sleep(Math.random() * 200);
        line.cut();
      }
    })();
    while (!isOver()) {
      const query = client.submit({ agentId: "helper", prompt: "60 messages" });
      let text = "";
      for await (const { delta } of query) text += delta;
      expect(text).toBe(Array.from({ length: 60 }, (_, at) => `${at + 1} `).join(""));
      expect((await query.ended).status).toBe("completed");
    }
    await cutting;
  },
  60_000 + OWN_CUTS * 3_000,
);
