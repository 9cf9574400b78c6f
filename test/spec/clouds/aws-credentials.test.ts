import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createManualClock } from "@portico/adapters/clock/manual";
import { bedrock } from "@portico/clouds/models/bedrock";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CALLERS, expectError } from "../../harness/callers.ts";
import { NO_AWS, withEnvironment } from "../../harness/environment.ts";
import { AWS_KEYS, awsError, BEDROCK_REGION, fakeBedrock } from "../../harness/fake-bedrock.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { startProxy } from "../../harness/proxy-app.ts";
import { json } from "../../harness/upstream-answers.ts";

const MODEL = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0";
const HOUR = 3_600_000;
const { path, request } = CALLERS.messages;
const ASK = request("hi", { model: MODEL });
const NEXT_KEYS = { accessKeyId: "AKIANEXT0123456789AB", secretAccessKey: "the/next/secret+0123456789abcdef" };

let upstream: FakeUpstream;
let folder: string;
let environment: Disposable;
beforeEach(async () => {
  environment = withEnvironment(NO_AWS);
  upstream = await startFakeUpstream();
  folder = await mkdtemp(join(tmpdir(), "aws-"));
});
afterEach(async () => {
  environment[Symbol.dispose]();
  await rm(folder, { recursive: true });
  await upstream.close();
});

const clock = createManualClock();
const startWith = (profile?: string) => {
  const baseUrl = new URL(upstream.baseUrl).origin;
  const adapter = bedrock({ id: "bedrock", type: "aws", region: BEDROCK_REGION, models: [MODEL], baseUrl, profile });
  return startProxy({ clock, providers: [{ protocol: "own", id: "bedrock", adapter }] });
};

describe("credentials of AWS", () => {
  it("come from the environment, with the token of a session", async () => {
    using _environment = withEnvironment({
      AWS_ACCESS_KEY_ID: AWS_KEYS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: AWS_KEYS.secretAccessKey,
      AWS_SESSION_TOKEN: "the-token-of-a-session",
    });
    upstream.answerAll(fakeBedrock({ keys: [{ ...AWS_KEYS, sessionToken: "the-token-of-a-session" }] }));
    await using proxy = await startWith();
    expect((await proxy.post(path, ASK)).status).toBe(200);
    expect((await upstream.request()).headers["x-amz-security-token"]).toBe("the-token-of-a-session");
    upstream.answerNext(awsError(400, "ValidationException", "not the-token-of-a-session"));
    expect((await expectError(await proxy.post(path, ASK), 400, "messages")).message).toBe("not ***");
  });

  it("come from a profile of the shared file, which is read again after a refusal (openclaw/openclaw#77551)", async () => {
    const file = join(folder, "credentials");
    using _environment = withEnvironment({ AWS_SHARED_CREDENTIALS_FILE: file });
    await writeFile(file, profileOf(AWS_KEYS));
    upstream.answerAll(fakeBedrock({ keys: [AWS_KEYS] }));
    await using proxy = await startWith("tests");
    expect((await proxy.post(path, ASK)).status).toBe(200);
    await writeFile(file, profileOf(NEXT_KEYS));
    upstream.answerAll(fakeBedrock({ keys: [NEXT_KEYS] }));
    expect((await proxy.post(path, ASK)).status).toBe(200);
    upstream.answerAll(fakeBedrock({ keys: [] }));
    const { message } = await expectError(await proxy.post(path, ASK), 401, "messages");
    expect(message).toBe("The security token included in the request is invalid.");
    // The file is not read for each of many refused calls.
    expect(upstream.requests).toHaveLength(4);
  });

  it("that are missing are an error without a secret, which names the provider", async () => {
    await using proxy = await startWith("missing");
    const { message } = await expectError(await proxy.post(path, ASK), 502, "messages");
    expect(message).toBe('Provider "bedrock" could not get AWS credentials (CredentialsProviderError)');
    expect(upstream.requests).toEqual([]);
  });
});

describe("credentials of a role", () => {
  let reads: number;
  let isAway: boolean;
  let source: FakeUpstream;
  let role: Disposable;
  beforeEach(async () => {
    reads = 0;
    isAway = false;
    source = await startFakeUpstream();
    source.answerAll((exchange) => {
      reads += 1;
      if (isAway) return json(500, {})(exchange);
      return json(200, {
        ...{ AccessKeyId: AWS_KEYS.accessKeyId, SecretAccessKey: AWS_KEYS.secretAccessKey, Token: `session-token-${reads}` },
        Expiration: new Date(clock.now() + HOUR).toISOString(),
      })(exchange);
    });
    role = withEnvironment({ AWS_CONTAINER_CREDENTIALS_FULL_URI: `${new URL(source.baseUrl).origin}/role` });
    upstream.answerAll(
      fakeBedrock({ keys: [1, 2, 3, 4].map((each) => ({ ...AWS_KEYS, sessionToken: `session-token-${each}` })) }),
    );
  });
  afterEach(async () => {
    role[Symbol.dispose]();
    await source.close();
  });

  const tokenOf = async (number: number) => (await upstream.request(number)).headers["x-amz-security-token"];

  it("are read once for many calls, and renewed before they end without a call that waits", async () => {
    await using proxy = await startWith();
    const replies = await Promise.all(Array.from({ length: 20 }, () => proxy.post(path, ASK)));
    expect(replies.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(reads).toBe(1);
    await clock.jump(HOUR - 4 * 60_000);
    expect((await proxy.post(path, ASK)).status).toBe(200);
    expect(await tokenOf(21)).toBe("session-token-1");
    await expect.poll(() => reads).toBe(2);
    await expect
      .poll(async () => (await proxy.post(path, ASK)) && (await tokenOf(upstream.requests.length)))
      .toBe("session-token-2");
    expect(reads).toBe(2);
  });

  it("that have ended are used for no call", async () => {
    await using proxy = await startWith();
    expect((await proxy.post(path, ASK)).status).toBe(200);
    await clock.jump(HOUR + 1);
    expect((await proxy.post(path, ASK)).status).toBe(200);
    expect(await tokenOf(2)).toBe("session-token-2");
  });

  it("that cannot be renewed are used until they end", async () => {
    await using proxy = await startWith();
    expect((await proxy.post(path, ASK)).status).toBe(200);
    isAway = true;
    await clock.jump(HOUR - 60_000);
    expect((await proxy.post(path, ASK)).status).toBe(200);
    await expect.poll(() => reads).toBeGreaterThan(1);
    await clock.advance(60_000);
    expect((await expectError(await proxy.post(path, ASK), 502, "messages")).message).toMatch(/could not get AWS credentials/);
  });
});

function profileOf({ accessKeyId, secretAccessKey }: typeof AWS_KEYS): string {
  return `[tests]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`;
}
