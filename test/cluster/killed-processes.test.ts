import { randomBytes } from "node:crypto";
import { connectAgent } from "@portico/client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startBalancer } from "../harness/balancer.ts";
import { CLUSTER_OWNER, clusterPlace } from "../harness/cluster.ts";
import { type FailingCluster, startFailingCluster, WHOLE_ANSWER } from "../harness/failing-cluster.ts";

const first = await clusterPlace();
await first?.remove();

describe.skipIf(!first)("when a process is killed", () => {
  let failing: FailingCluster;
  beforeEach(async () => {
    failing = await startFailingCluster();
  }, 120_000);
  afterEach(() => failing?.[Symbol.asyncDispose]());
  async function kill() {
    failing.processes[0]!.process.signal("SIGKILL");
    await failing.processes[0]!.process.exited;
  }

  it("its clients come back to another process, and get every event of a turn that goes on there", async () => {
    const [a, b] = failing.processes.map(({ process }) => process.url("agent"));
    await using balancer = await startBalancer([a!]);
    const send = (request: Request) => fetch(new Request(b! + new URL(request.url).pathname, request));
    await using client = connectAgent({ baseURL: balancer.url, token: CLUSTER_OWNER, fetch: send });
    const turn = await failing.beginTurn(client, "Go on");
    balancer.setBackends([b!]);
    await kill();
    failing.release();
    expect(await turn.ended).toMatchObject({ text: WHOLE_ANSWER, end: { status: "completed" } });
    expect(failing.asked()).toBe(1);
  });

  it("its clients hear from another process that the turn has ended that it executed", async () => {
    const turn = await failing.beginTurn(failing.client(failing.processes[1], failing.processes[0]), "Break off");
    await kill();
    expect((await turn.ended).end).toMatchObject({ status: "failed", code: "process_restart" });
  });

  it("readers of media continue with the same link at another process", async () => {
    // More than the buffers of both sockets hold.
    const bytes = Buffer.concat([Buffer.from("GIF89a"), randomBytes(32 * 1024 * 1024)]);
    const client = failing.client();
    const media = await client.uploadMedia(new File([bytes], "large.gif", { type: "image/gif" }));
    const { items } = await client.mediaLinks([media.mediaId]);
    const { pathname, search } = new URL(items[0]!.url);
    const [a, b] = failing.processes.map(({ process }) => process.url("agent") + pathname + search);
    const reader = (await fetch(a!)).body!.getReader();
    const read: Uint8Array[] = [(await reader.read()).value!];
    await kill();
    const rest = async () => {
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) read.push(piece.value);
    };
    await rest().catch(() => {});
    const got = Buffer.concat(read);
    expect(got.length).toBeLessThan(bytes.length);
    const continued = await fetch(b!, { headers: { range: `bytes=${got.length}-` } });
    expect(continued.status).toBe(206);
    expect(Buffer.concat([got, Buffer.from(await continued.arrayBuffer())]).equals(bytes)).toBe(true);
  });
});
