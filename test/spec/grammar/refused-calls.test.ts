import { createManualClock } from "@portico/adapters/clock/manual";
import { createApp, ports } from "@portico/core";
import { auditPage } from "@portico/operator/audit";
import { testing } from "@portico/presets/testing";
import { describe, expect, it } from "vitest";

const MINUTE_MS = 60_000;

async function start() {
  const clock = createManualClock();
  const app = await createApp({ name: "refusing", extends: testing({ clock }), plugins: [auditPage({})] });
  const call = async (token: string) =>
    (await app.fetch(new Request("http://refusing/api/audit", { headers: { "x-agent-service-token": token } }))).status;
  const refused = async () =>
    (await app.port(ports.audit).read()).items.map(({ action, object, count, who }) => ({ action, object, count, who }));
  return { app, clock, call, refused };
}

describe("calls without a valid credential", () => {
  it("are recorded in the audit once a minute, with their number", async () => {
    const { app, clock, call, refused } = await start();
    for (let at = 0; at < 100; at++) expect(await call(`guess-${at}`)).toBe(401);
    expect(await call("owner-token")).toBe(200);
    expect(await refused()).toEqual([]);
    await clock.advance(MINUTE_MS);
    const entry = (count: number) => ({ action: "access.refused", object: "agent", count, who: { role: "unknown" } });
    await expect.poll(refused).toEqual([entry(100)]);
    await clock.advance(10 * MINUTE_MS);
    expect(await refused()).toHaveLength(1);
    await call("guess");
    await clock.advance(MINUTE_MS);
    await expect.poll(refused).toEqual([entry(1), entry(100)]);
    await app.close();
  });

  it("are recorded when the app closes, too", async () => {
    const { app, call, refused } = await start();
    await call("guess");
    const seen = refused;
    const audit = app.port(ports.audit);
    const recorded: ports.AuditFact[] = [];
    const { record } = audit;
    (audit as { record: ports.Audit["record"] }).record = (fact, writes) => {
      recorded.push(fact);
      return record(fact, writes);
    };
    expect(await seen()).toEqual([]);
    await app.close();
    expect(recorded).toMatchObject([{ action: "access.refused", count: 1 }]);
  });
});
