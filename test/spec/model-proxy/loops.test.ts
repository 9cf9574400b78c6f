import { describe, expect, it } from "vitest";
import { COMBINATIONS, CALLERS, expectError, SAME } from "../../harness/callers.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { startGateway } from "../../harness/gateway.ts";
import { startProxy } from "../../harness/proxy-app.ts";

describe("providers that lead back to their caller (open points 2)", () => {
  it.each(SAME)("a call of a $caller provider that comes back is refused, and never turns for ever", async ({ caller }) => {
    await using gateway = await startGateway();
    await using proxy = await startProxy({
      providers: [{ protocol: caller, upstream: gateway }],
      instances: ["main"],
    });
    gateway.leadTo(proxy.url, await proxy.token());
    const { path, request } = CALLERS[caller];
    const reply = await proxy.post(path, request());
    await expectError(reply, 508, caller);
    expect(gateway.calls()).toBe(1);
  });

  it("the same through a second instance", async () => {
    await using toFirst = await startGateway();
    await using second = await startProxy({ providers: [{ protocol: "messages", upstream: toFirst }], instances: ["main"] });
    await using toSecond = await startGateway();
    await using first = await startProxy({ providers: [{ protocol: "messages", upstream: toSecond }], instances: ["main"] });
    toSecond.leadTo(second.url, await second.token());
    toFirst.leadTo(first.url, await first.token());
    const { path, request } = CALLERS.messages;
    await expectError(await first.post(path, request()), 508, "messages");
    expect([toSecond.calls(), toFirst.calls()]).toEqual([1, 1]);
  });

  it("a chain of instances without a loop is served; providers that are not Portico instances receive no trail", async () => {
    await using upstream = await startFakeUpstream();
    await using last = await startProxy({ providers: [{ protocol: "messages", upstream }] });
    await using gateway = await startGateway();
    gateway.leadTo(last.url, await last.token());
    await using first = await startProxy({ providers: [{ protocol: "messages", upstream: gateway }], instances: ["main"] });
    for (const { caller } of COMBINATIONS.filter(({ upstream: protocol }) => protocol === "messages")) {
      const { path, request } = CALLERS[caller];
      expect((await first.post(path, request())).status).toBe(200);
    }
    expect(gateway.trails()).toEqual([expect.any(String), expect.any(String)]);
    for (const { headers } of upstream.requests) expect(headers["x-portico-trail"]).toBeUndefined();
  });
});
