import { join } from "node:path";
import type { TokenHolder } from "@portico/adapters/identity/tokens";
import { fileSecrets } from "@portico/adapters/secrets/files";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { hmacSigning } from "@portico/adapters/signing/hmac";
import { type Adapter, createApp, loadConfig, ports, Secret } from "@portico/core";
import { agent, agentSchema } from "@portico/presets/agent";
import { local } from "@portico/presets/local";
import { workflow } from "@portico/presets/workflow";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { instanceIdentity, instanceKey } from "../../../presets/src/platform/instance.ts";
import { openAdapter } from "../../conformance/open-adapter.ts";
import { signingConformance } from "../../conformance/signing.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder.remove());

const owner = (token: string, userId = "owner"): TokenHolder => ({ token: new Secret(token), userId, role: "owner" });
const member = (token: string): TokenHolder => ({ token: new Secret(token), userId: "member", role: "member" });

signingConformance("instance", (key) => hmacSigning({ key: instanceKey({ tokens: key ? [owner(key.reveal())] : [] }) }), {
  others: [memorySecrets()],
  keyless: false,
});

/** One start of an instance on the data directory: a signature, whether it knows `known`, and the instance token that it made just now. */
async function start(tokens: readonly TokenHolder[] = [], { known = "", signingFirst = false } = {}) {
  const made: Secret[] = [];
  const instance = { tokens, onMade: (token: Secret) => void made.push(token) };
  const both: Adapter[] = [instanceIdentity(instance), hmacSigning({ key: instanceKey(instance) })];
  const adapters = [fileSecrets({ path: join(folder.path, "credentials.json") }), ...(signingFirst ? both.reverse() : both)];
  await using app = await createApp({ name: "instance", adapters });
  return {
    signature: await app.port(ports.signing).sign("link", "message"),
    isKnown: await app.port(ports.signing).verify("link", "message", known),
    madeIsInstanceToken: await Promise.all(made.map((token) => app.port(ports.identity).isInstanceToken(token.reveal()))),
    made,
  };
}

describe("signatures of an instance (4.5, rule 10)", () => {
  it("are the same after a restart on the same data directory, with the token that the instance made itself", async () => {
    const first = await start();
    expect(await start([], { known: first.signature })).toMatchObject({ signature: first.signature, isKnown: true, made: [] });
  });

  it("are the same after a restart with the same token in the settings, also if other tokens exist", async () => {
    const { signature } = await start([owner("first")]);
    expect((await start([member("m"), owner("first"), owner("second", "other")], { known: signature })).isKnown).toBe(true);
  });

  it.each<[string, readonly TokenHolder[], readonly TokenHolder[]]>([
    ["the settings give another token", [owner("first")], [owner("second")]],
    ["another owner's token comes first", [owner("first"), owner("second", "other")], [owner("second", "other"), owner("first")]],
    ["the settings give a token in place of the made one", [], [owner("first")]],
    ["the settings no longer give one", [owner("first")], [member("first")]],
  ])("are none any more when %s", async (_what, before, after) => {
    const { signature } = await start(before);
    expect((await start(after, { known: signature })).isKnown).toBe(false);
    expect((await start(before, { known: signature })).isKnown).toBe(true);
  });

  it("differ between two instances that made their tokens themselves", async () => {
    const { signature } = await start();
    folder.remove();
    expect((await start([], { known: signature })).isKnown).toBe(false);
  });

  it.each([false, true])("leave the made token to be shown once, whichever adapter opens first (%s)", async (signingFirst) => {
    const { made, madeIsInstanceToken } = await start([member("m")], { signingFirst });
    expect(made).toHaveLength(1);
    expect(madeIsInstanceToken).toEqual([true]);
    expect((await start([member("m")], { signingFirst })).made).toEqual([]);
  });
});

it.each([
  ["agent", agent],
  ["local", local],
  ["workflow", workflow],
])("preset %s signs with what derives from its instance access token", async (_name, preset) => {
  const env = { PORTICO_DATA_DIR: folder.path, PORTICO_AUTO_PROVIDERS: "false", PORTICO_LOG_LEVEL: "error" };
  const made: Secret[] = [];
  const onTokenMade = (token: Secret, of: string) => void (of === "agent" && made.push(token));
  const signatureOf = async (key: Secret): Promise<string> => {
    const { port, close } = await openAdapter(hmacSigning({ key }));
    const signature = await port.sign("link", "message");
    await close();
    return signature;
  };
  const started = async (tokens: readonly TokenHolder[]): Promise<string> => {
    const { value: settings } = loadConfig(agentSchema, { env });
    const agent = { ...settings.agent, tokens: [...tokens] as typeof settings.agent.tokens };
    const options = { settings: { ...settings, agent }, providers: [], onTokenMade };
    await using app = await createApp(preset(options));
    return app.port(ports.signing).sign("link", "message");
  };
  const own = await started([]);
  expect(own).toBe(await signatureOf(made[0]!));
  expect(await started([])).toBe(own);
  expect(await started([owner("given")])).toBe(await signatureOf(new Secret("given")));
  expect(made).toHaveLength(1);
});
