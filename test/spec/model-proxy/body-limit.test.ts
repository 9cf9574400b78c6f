import { describe, expect, it } from "vitest";
import { CALLERS, expectError, PROTOCOLS } from "../../harness/callers.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import type { Answer } from "../../harness/upstream-exchange.ts";
import { startProxy } from "../../harness/proxy-app.ts";
import { json } from "../../harness/upstream-answers.ts";

const MIB = 1024 * 1024;
/** Specification 8. */
const LIMIT = 256 * MIB;
const HEAD = '{"model":"echo-large","pad":"';
const TAIL = '"}';

describe("the body limit of 256 MiB (4.1, 7.1, 8)", () => {
  it.each(PROTOCOLS)("%s: a chunked body of more than that is 413, and the upstream's call is aborted", async (protocol) => {
    await using upstream = await startFakeUpstream({ keepBodies: false });
    upstream.answerAll(afterBody);
    await using proxy = await startProxy({ providers: [{ protocol, upstream }] });
    const { path } = CALLERS[protocol];
    const headers = { "x-api-key": await proxy.token(), "content-type": "application/json" };
    await expectError(await proxy.call({ path, headers, body: bodyOf(LIMIT + 1) }), 413, protocol);
    await upstream.quiet();
    for (const begun of upstream.requests) expect(await begun.outcome).toBe("aborted");
  });

  it("a body of exactly 256 MiB passes", async () => {
    await using upstream = await startFakeUpstream({ keepBodies: false });
    upstream.answerAll(afterBody);
    await using proxy = await startProxy({ providers: [{ protocol: "messages", upstream }] });
    const headers = { "x-api-key": await proxy.token(), "content-type": "application/json" };
    const reply = await proxy.call({ path: "/v1/messages", headers, body: bodyOf(LIMIT) });
    expect(await reply.json()).toEqual({ received: LIMIT });
  });

  it("a wrong token is refused before anything of the body is read", async () => {
    await using upstream = await startFakeUpstream();
    await using proxy = await startProxy({ providers: [{ protocol: "messages", upstream }] });
    const headers = { "x-api-key": "service_wrong", "content-type": "application/json" };
    const reply = await proxy.call({ path: "/v1/messages", headers, body: endless() });
    expect(reply.status).toBe(401);
    reply.leave();
  });

  it("after a refused upload the next caller is served", async () => {
    await using upstream = await startFakeUpstream();
    await using proxy = await startProxy({ providers: [{ protocol: "messages", upstream }] });
    const headers = { "x-api-key": await proxy.token(), "content-type": "application/json", "content-length": String(LIMIT + 1) };
    expect((await proxy.call({ path: "/v1/messages", headers, body: endless() })).status).toBe(413);
    expect((await proxy.post("/v1/messages", CALLERS.messages.request())).status).toBe(200);
  });
});

const afterBody: Answer = async (exchange) => {
  await exchange.request.sha256();
  await json(200, { received: exchange.request.received })(exchange);
};

/** A JSON body of exactly that many bytes, made on the way. */
async function* bodyOf(bytes: number): AsyncGenerator<string | Uint8Array> {
  yield HEAD;
  const block = Buffer.alloc(MIB, "a");
  for (let left = bytes - HEAD.length - TAIL.length; left > 0; left -= MIB) yield block.subarray(0, Math.min(left, MIB));
  yield TAIL;
}

/** Begins and then says nothing more. */
async function* endless(): AsyncGenerator<string> {
  yield HEAD;
  await new Promise(() => {});
}
