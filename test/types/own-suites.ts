// Nothing here runs: `npm run types` compiles it. How the pages of ports call the conformance suites, over adapters that their readers have.
import type { Adapter, ports, Secret } from "@portico/core";
import type { KnownToken } from "@portico/test/conformance/identity";
import type { ProviderSetting } from "@portico/test/conformance/models";
import type { RealtimeClient } from "@portico/test/conformance/realtime";

import { busConformance } from "@portico/test/conformance/bus";

busConformance("mine", () => {
  const instance = newInstance();
  return () => ({ adapter: myBus(instance), others: [] });
});

import { clockConformance } from "@portico/test/conformance/clock";

clockConformance("mine", () => ({ adapter: myClock(), pass: (ms) => letPass(ms) }));

import { identityConformance } from "@portico/test/conformance/identity";

identityConformance("mine", (known) => myIdentity(known), { others: [] });

import { idsConformance } from "@portico/test/conformance/ids";

idsConformance("mine", () => myIds(), { foretold: false });

import { modelsConformance } from "@portico/test/conformance/models";

modelsConformance("mine", (setting) => ({ adapter: myProvider(setting), others: [], pass: (ms) => letPass(ms) }), {
  upstream: "http",
});

import { presenceConformance } from "@portico/test/conformance/presence";

presenceConformance("mine", () => {
  const instance = newInstance();
  return () => ({ adapter: myPresence(instance), others: [] });
});

import { realtimeConformance } from "@portico/test/conformance/realtime";

realtimeConformance("mine", () => ({
  adapter: myRealtime(),
  connect: (opened, path, hello, last) => connectTo(opened, path, hello, last),
}));

import { recordsConformance } from "@portico/test/conformance/records";

recordsConformance("mine", () => myRecords({ url: process.env.TEST_STORE_URL }), { others: [], shared: true });

import { sealingConformance } from "@portico/test/conformance/sealing";

sealingConformance("mine", (key) => mySealing({ key }), { others: () => [] });

import { secretsConformance } from "@portico/test/conformance/secrets";

secretsConformance("mine", () => mySecrets(), { others: [], shared: true });

import { signingConformance } from "@portico/test/conformance/signing";

signingConformance("mine", (key) => mySigning({ key }), { others: [], keyless: true });

import { telemetryConformance } from "@portico/test/conformance/telemetry";

telemetryConformance("mine", () => ({ adapter: myTelemetry(), told: () => everythingWritten() }));

declare function newInstance(): string;
declare function myBus(instance: string): Adapter<typeof ports.bus>;
declare function myPresence(instance: string): Adapter<typeof ports.presence>;
declare function myClock(): Adapter<typeof ports.clock>;
declare function letPass(ms: number): Promise<void>;
declare function myIdentity(known: readonly KnownToken[]): Adapter<typeof ports.identity>;
declare function myIds(): Adapter<typeof ports.ids>;
declare function myProvider(setting: ProviderSetting): Adapter<typeof ports.models>;
declare function myRealtime(): Adapter<typeof ports.realtime>;
declare function connectTo(
  opened: ports.Realtime,
  path: string,
  hello: unknown,
  last: string | undefined,
): Promise<RealtimeClient>;
declare function myRecords(options: { readonly url: string | undefined }): Adapter<typeof ports.records>;
declare function mySealing(options: { readonly key: Secret }): Adapter<typeof ports.sealing>;
declare function mySecrets(): Adapter<typeof ports.secrets>;
declare function mySigning(options: { readonly key: Secret | undefined }): Adapter<typeof ports.signing>;
declare function myTelemetry(): Adapter<typeof ports.telemetry>;
declare function everythingWritten(): string;
