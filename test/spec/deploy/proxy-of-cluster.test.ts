import { Agent } from "node:https";
import type { LookupFunction } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { io } from "socket.io-client";
import { Pool } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CLUSTER_OWNER, clusterPlace, type RunningCluster, startCluster } from "../../harness/cluster.ts";
import { installedProxies, type RunningProxy, startReverseProxy } from "../../harness/reverse-proxies.ts";
import { readPage } from "../docs/pages.ts";

const { blocks } = await readPage("docs/deploy/behind-a-proxy.md");
const blockOf = (words: string) => blocks.find(({ language, text }) => language === "haproxy" && text.includes(words))!.text;
const place = installedProxies().includes("haproxy") ? await clusterPlace() : undefined;

describe.skipIf(!place)("HAProxy in front of a cluster", () => {
  let cluster: RunningCluster;
  let proxy: RunningProxy;
  let pool: Pool;
  beforeAll(async () => {
    const env = {
      PORTICO_PROBES_PORT: "0",
      PORTICO_AGENT_PUBLIC_URL: "https://agents.example",
      PORTICO_SHUTDOWN_DELAY_MS: "4000",
    };
    cluster = await startCluster(place!, { count: 2, env });
    const [one, two] = cluster.processes.map((each) => [new URL(each.url("agent")).host, new URL(each.url("probes")).port]);
    const backend = blockOf("cookie one")
      .replace("10.0.0.1:49154 cookie one port 9464", `${one![0]} cookie one port ${one![1]}`)
      .replace("10.0.0.2:49154 cookie two port 9464", `${two![0]} cookie two port ${two![1]}`);
    const frontend = blockOf("frontend").replace(/^backend agent\n.*\n/m, "");
    proxy = await startReverseProxy("haproxy", `${frontend}\n${backend}`);
    const connect = { ca: proxy.certificate, servername: "agents.example" };
    pool = new Pool(`https://127.0.0.1:${proxy.port}`, { connect, connections: 4 });
  });
  afterAll(async () => {
    await pool?.destroy();
    await proxy?.[Symbol.asyncDispose]();
    if (cluster) await cluster[Symbol.asyncDispose]();
    else await place?.remove();
  });

  const status = async () => {
    const headers = { host: `agents.example:${proxy.port}`, "x-agent-service-token": CLUSTER_OWNER };
    const { statusCode, body } = await pool.request({ path: "/api/handshake", method: "GET", headers });
    await body.dump();
    return statusCode;
  };

  it("keeps clients that use long polling at their process", async () => {
    const lookup: LookupFunction = (_name, { all }, done) =>
      all ? done(null, [{ address: "127.0.0.1", family: 4 }]) : done(null, "127.0.0.1", 4);
    const agent = new Agent({ ca: proxy.certificate, lookup });
    const sockets = Array.from({ length: 6 }, (_, index) =>
      io(`https://agents.example:${proxy.port}`, {
        ...{ transports: ["polling"], upgrade: false, forceNew: true, reconnection: false, withCredentials: true },
        agent: agent as never,
        auth: { token: CLUSTER_OWNER, clientInstanceId: `behind-haproxy-000${index}` },
      }),
    );
    try {
      for (const socket of sockets) {
        if (!socket.connected)
          await new Promise<void>((resolve, reject) => socket.on("connect", resolve).on("connect_error", reject));
      }
      expect(sockets.map(({ connected }) => connected)).not.toContain(false);
    } finally {
      for (const socket of sockets) socket.close();
      agent.destroy();
    }
  });

  it("answers every request while a process is stopped, because the process says so first", async () => {
    const [first] = cluster.processes;
    first!.signal("SIGTERM");
    let hasExited = false;
    void first!.exited.then(() => (hasExited = true));
    const seen = new Set<number>();
    let count = 0;
    while (!hasExited) {
      seen.add(await status());
      count++;
      await wait(20);
    }
    for (let more = 0; more < 20; more++) seen.add(await status());
    expect(count).toBeGreaterThan(10);
    expect([...seen]).toEqual([200]);
    expect((await first!.exited).code).toBe(0);
  });
});
