import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CLUSTER_OWNER, clusterPlace, type RunningCluster, startCluster } from "../harness/cluster.ts";

const first = await clusterPlace();
await first?.remove();

describe.skipIf(!first)("signing in to a cluster", () => {
  let cluster: RunningCluster;
  beforeAll(async () => {
    cluster = await startCluster((await clusterPlace())!, { count: 2 });
  });
  afterAll(() => cluster[Symbol.asyncDispose]());
  const at = (member: number, surface: string) => cluster.processes[member]!.url(surface);
  const post = (url: string, headers: Record<string, string>, body?: object) =>
    fetch(url, {
      method: "POST",
      headers: { ...headers, ...(body && { "content-type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
    });

  it("works at any process: a link of one is used at another, once", async () => {
    const made = await post(`${at(0, "agent")}/api/sign-in-links`, { "x-agent-service-token": CLUSTER_OWNER });
    const code = ((await made.json()) as { url: string }).url.split("/").at(-1);
    const both = await Promise.all([0, 1].map((member) => post(`${at(member, "agent")}/api/sign-in`, {}, { code })));
    expect(both.map(({ status }) => status).sort()).toEqual([200, 401]);
    const { token } = (await both.find(({ status }) => status === 200)!.json()) as { token: string };
    for (const member of [0, 1]) {
      const headers = { "x-agent-service-token": token };
      expect((await fetch(`${at(member, "agent")}/api/handshake`, { headers })).status).toBe(200);
    }
  });

  it("signs out at every process", async () => {
    const made = await post(`${at(0, "agent")}/api/sign-in-links`, { "x-agent-service-token": CLUSTER_OWNER });
    const code = ((await made.json()) as { url: string }).url.split("/").at(-1);
    const { token } = (await (await post(`${at(0, "agent")}/api/sign-in`, {}, { code })).json()) as { token: string };
    const headers = { "x-agent-service-token": token };
    const statusAt = async (member: number) => (await fetch(`${at(member, "agent")}/api/handshake`, { headers })).status;
    expect(await Promise.all([0, 1].map(statusAt))).toEqual([200, 200]);
    expect((await fetch(`${at(0, "agent")}/api/session`, { method: "DELETE", headers })).status).toBe(204);
    expect(await Promise.all([0, 1].map(statusAt))).toEqual([401, 401]);
  });

  it("gives tokens of the workflow service that every process accepts", async () => {
    const issued = await post(`${at(0, "agent")}/api/service-tokens`, { "x-agent-service-token": CLUSTER_OWNER });
    const { token } = (await issued.json()) as { token: string };
    for (const member of [0, 1]) {
      const headers = { "x-workflow-service-token": token };
      expect((await fetch(`${at(member, "workflow")}/api/workflows`, { headers })).status).toBe(200);
      expect((await fetch(`${at(member, "agent")}/api/handshake`, { headers: { "x-agent-service-token": token } })).status).toBe(
        401,
      );
    }
  });
});
