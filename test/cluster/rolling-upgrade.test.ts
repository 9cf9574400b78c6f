import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { connectAgent } from "@portico/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CLUSTER_OWNER, CLUSTER_WORKFLOW, clusterPlace, type RunningCluster, startCluster } from "../harness/cluster.ts";
import { writeDocuments } from "../harness/cluster-documents.ts";

const place = await clusterPlace();

/** How often each run has had its effect, which may not be repeated. */
const effects = new Map<string, number>();
const shop = createServer((request, response) => {
  const run = request.url!.slice(1);
  effects.set(run, (effects.get(run) ?? 0) + 1);
  setTimeout(() => response.end("{}"), 20);
});

describe.skipIf(!place)("three processes that are replaced one after another, under load", () => {
  let cluster: RunningCluster;
  beforeAll(async () => {
    await once(shop.listen(0, "127.0.0.1"), "listening");
    const url = `http://127.0.0.1:${(shop.address() as AddressInfo).port}/\${{ parameters.item }}`;
    await writeDocuments(place!, {
      "agents/helper/agent.json": { name: "Helper", provider: "demo", model: "demo" },
      "workflows/order.json": {
        parameters: { type: "object", required: ["item"], properties: { item: { type: "string" } } },
        nodes: {
          wait: { type: "wait", with: { for: "300ms" } },
          ship: { type: "http", needs: ["wait"], with: { method: "POST", url } },
          done: { type: "wait", needs: ["ship"], with: { for: "100ms" } },
        },
      },
    });
    const env = { PORTICO_WORKFLOW_HTTP_ALLOW: '["127.0.0.1"]', PORTICO_SHUTDOWN_GRACE_MS: "60000" };
    cluster = await startCluster(place!, { env: { ...env, PORTICO_SHUTDOWN_DELAY_MS: "2000" } });
  }, 180_000);
  afterAll(async () => {
    await cluster?.[Symbol.asyncDispose]();
    shop.closeAllConnections();
    shop.close();
  });

  const headers = { "x-workflow-service-token": CLUSTER_WORKFLOW, "content-type": "application/json" };

  it("lose no run and no turn, repeat no effect, interrupt no step, and refuse no caller", async () => {
    let isOver = false;
    const accepted = new Map<string, string>();
    const refused: unknown[] = [];
    const trigger = async (caller: number): Promise<void> => {
      for (let number = 0; !isOver; number++) {
        const item = `${caller}-${number}`;
        const url = `${cluster.url("workflow")}/api/workflow/webhook?id=order`;
        try {
          const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify({ item }) });
          if (answer.status === 200) accepted.set(item, ((await answer.json()) as { runId: string }).runId);
          else refused.push(answer.status);
        } catch (error) {
          refused.push(error);
        }
        await wait(20);
      }
    };
    const turns: string[] = [];
    const converse = async (): Promise<void> => {
      await using client = connectAgent({ baseURL: cluster.url("agent"), token: CLUSTER_OWNER });
      for (let number = 0; !isOver; number++) {
        let text = "";
        const query = client.submit({ agentId: "helper", prompt: `Say number ${number}` });
        for await (const { delta } of query) text += delta ?? "";
        const { status } = await query.ended;
        turns.push(status === "completed" && text.includes(`number ${number}`) ? "completed" : `${number}: ${status}, ${text}`);
      }
    };
    const callers = [trigger(0), trigger(1), converse()];
    try {
      for (const leaving of [...cluster.processes]) {
        await cluster.add();
        const before = [accepted.size, turns.length];
        expect(await cluster.retire(leaving)).toBe(0);
        // The others work on.
        await expect.poll(() => accepted.size > before[0]! && turns.length > before[1]!).toBe(true);
      }
    } finally {
      isOver = true;
      await Promise.all(callers);
    }

    expect(refused).toEqual([]);
    expect(new Set(turns)).toEqual(new Set(["completed"]));
    for (const [item, runId] of accepted) {
      const detail = async () => {
        const answer = await fetch(`${cluster.url("workflow")}/api/workflow/order/runs/${runId}`, { headers });
        return ((await answer.json()) as { status: string }).status;
      };
      await expect.poll(detail).toBe("completed");
      expect([item, effects.get(item)]).toEqual([item, 1]);
    }
    expect(effects.size).toBe(accepted.size);
  });
});
