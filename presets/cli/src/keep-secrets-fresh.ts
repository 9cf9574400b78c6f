import { stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { type App, isStoreAway, ports, type Replaceable, Secret, type SecretFile } from "@portico/core";
import { findOwnToken } from "@portico/presets/platform/own-token";
import { chooseProviders, isInstance } from "@portico/presets/platform/provider-choice";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import type { RotatingSettings } from "@portico/presets/settings/rotating-settings";
import type { DataDirectory } from "./data-directory.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { readGivenCertificate } from "./certificate.ts";
import { refuseOwnKeys } from "./refuse-loops.ts";
import type { Hangup } from "./stop-request.ts";

interface FreshSecretsOptions {
  readonly app: App;
  readonly rotating: Replaceable<RotatingSettings>;
  /** Where the secrets of `rotating` were read from. */
  readonly secretFiles: readonly SecretFile[];
  /** Reads the settings again. Throws CommandFailed with sentences without secrets. */
  readonly read: () => Promise<{ readonly settings: PlatformSettings; readonly secretFiles: readonly SecretFile[] }>;
  readonly directory: DataDirectory;
  readonly hangup: Hangup;
  /** Whether a gauge counts the rotations. Default: it does. */
  readonly isCounted?: boolean;
}

/** The settings that `rotating` replaces. The files of other secrets are read at the start only. */
const ROTATED = /^(agent\.tokens|workflow\.(token|secrets)|providers|mcpServers|cluster)\b/;

interface FreshSecrets {
  /** Reads them again now. */
  readAgain(): Promise<void>;
  end(): Promise<void>;
}

/**
 * Reads the secrets and certificates of a running service again, on SIGHUP and when a file with one has changed. Settings that cannot be read,
 * or are refused, change nothing.
 */
export function keepSecretsFresh({
  app,
  rotating,
  secretFiles: first,
  read,
  directory,
  hangup,
  isCounted = true,
}: FreshSecretsOptions): FreshSecrets {
  const telemetry = app.port(ports.telemetry);
  if (!app.has(ports.secrets)) return { readAgain: async () => {}, end: async () => {} };
  const secrets = app.port(ports.secrets);
  const ending = new AbortController();
  const counts = { applied: 0, refused: 0 };
  const gauge: ports.Gauge = {
    name: "portico_secret_rotations",
    help: "How often changed secrets took effect or were refused since the start",
    read: () => Object.entries(counts).map(([outcome, value]) => ({ labels: { outcome }, value })),
  };
  const removeGauge = isCounted ? telemetry.gauge(gauge) : () => {};
  let known = digestSecrets(rotating.current, secrets);
  known.catch(() => {});
  let files = filesOf(first, rotating.current);
  /** A store was away: the next look tries again, and says nothing more until it succeeds. */
  let isDue = false;

  const readAgain = async (trigger: Trigger): Promise<void> => {
    try {
      const { settings, secretFiles } = await read();
      files = filesOf(secretFiles, settings);
      await refuseLoops(app, settings, rotating.current);
      const digests = await digestSecrets(settings, secrets);
      const changed = changedSecrets(await known.catch(() => digests), digests);
      const replace = () => rotating.replace(settings);
      const fact = { action: "secrets.rotate", object: changed.join(" "), count: changed.length, who: INSTANCE };
      await (changed.length > 0 && app.has(ports.audit) ? app.port(ports.audit).attempt(fact, replace) : replace());
      isDue = false;
      known = Promise.resolve(digests);
      if (changed.length > 0) counts.applied++;
      if (changed.length > 0 || trigger === "signal")
        telemetry.log.info("Secrets were read again", { trigger, changed: changed.join(" ") || "none" });
    } catch (error) {
      const wasDue = isDue;
      isDue = isStoreAway(error) || error instanceof ports.SecretsUnavailable;
      if (isDue && wasDue) return;
      counts.refused++;
      const fields = { trigger, reason: reasonOf(error) };
      telemetry.log.warn("Secrets could not be read again: the present ones stay valid", fields, error);
    }
  };

  let last: Promise<void> = Promise.resolve();
  let isWaiting = false;
  /** A request that comes while another one waits needs no reading of its own. */
  const request = (trigger: Trigger): Promise<void> => {
    if (isWaiting) return last;
    isWaiting = true;
    last = last.then(() => {
      isWaiting = false;
      return ending.signal.aborted ? undefined : readAgain(trigger);
    });
    return last;
  };

  const watch = async (): Promise<void> => {
    const settled = new SettledFiles();
    for (;;) {
      const { watchMs } = rotating.current.rotation;
      const isChanged = watchMs > 0 && (await settled.look([...files, directory.credentials]));
      if (isChanged || isDue) await request("file");
      await sleep(watchMs > 0 ? watchMs : OFF_MS, undefined, { signal: ending.signal, ref: false });
    }
  };
  const watching = watch().catch((error: unknown) => {
    if (!ending.signal.aborted) telemetry.log.error("Files with secrets are not watched any more", {}, error);
  });
  hangup.onRequest(() => void request("signal"));

  return {
    readAgain: () => request("signal"),
    async end() {
      ending.abort();
      removeGauge();
      await Promise.all([watching, last]);
    },
  };
}

const INSTANCE = { role: "instance" } as const;

type Trigger = "signal" | "file";

/** How often a service that watches no files looks whether it should. */
const OFF_MS = 60_000;

function filesOf(secretFiles: readonly SecretFile[], { https }: RotatingSettings): readonly string[] {
  const certificate = [https.cert, https.key].filter((file) => file !== undefined);
  return [...secretFiles.filter(({ key }) => ROTATED.test(key)).map(({ file }) => file), ...certificate];
}

/** The rules of a start for providers' keys. */
async function refuseLoops(app: App, settings: PlatformSettings, before: RotatingSettings): Promise<void> {
  if (settings.providers.length === 0) return;
  const [providers, earlier] = await Promise.all(
    [settings, before].map((at) => chooseProviders({ ...at, autoProviders: false }, { env: {} })),
  );
  await refuseOwnKeys(app, settings, providers!);
  const turned = providers!.find((provider) =>
    earlier!.some((each) => each.id === provider.id && isInstance(each) !== isInstance(provider)),
  );
  if (turned)
    throw new CommandFailed(
      `Provider "${turned.id}": a key of another kind, a safe token in place of a vendor's or the reverse, needs a restart`,
      EXIT.config,
    );
}

/** Errors that are sentences for people name no secret. */
function reasonOf(error: unknown): string {
  const isSentence = error instanceof CommandFailed || error instanceof TypeError || error instanceof ports.SecretsUnavailable;
  return isSentence ? error.message.replaceAll("\n", "; ") : "an unexpected error";
}

/** Digests of the secrets that can be rotated, by the name of their setting. */
type SecretDigests = ReadonlyMap<string, string>;

/** The digests of an app's secrets now: from the settings, and created by the instance. */
async function digestSecrets(settings: RotatingSettings, secrets: ports.Secrets): Promise<SecretDigests> {
  const { agent, workflow, providers, mcpServers, cluster } = settings;
  const digest = (values: readonly (Secret | undefined)[]) =>
    secrets.digest(JSON.stringify(values.map((value) => value?.reveal() ?? null)));
  const holders = agent.tokens.map(({ token, userId, role }) => [secrets.digest(token.reveal()), userId, role]);
  const digestNamed = (values: Readonly<Record<string, Secret | undefined>> = {}) => {
    const names = Object.keys(values).sort();
    return secrets.digest(`${names.join()} ${digest(names.map((name) => values[name]))}`);
  };
  const certificate = readGivenCertificate(settings);
  const { s3 } = cluster.blobs;
  return new Map([
    ["agent.tokens", secrets.digest(JSON.stringify(holders))],
    ["workflow.token", digest([workflow.token])],
    ["workflow.secrets", digestNamed(workflow.secrets)],
    ...providers.map(({ id, credential, keys = [], headers }): [string, string] => [
      `providers.${id}`,
      secrets.digest(`${digest([credential instanceof Secret ? credential : undefined, ...keys])} ${digestNamed(headers)}`),
    ]),
    ...Object.entries(mcpServers).map(([id, { env, headers }]): [string, string] => [
      `mcpServers.${id}`,
      digestNamed(env ?? headers),
    ]),
    ["cluster.postgres", digest([cluster.postgres.url, cluster.postgres.directUrl])],
    ["cluster.redis", digest([cluster.redis.url])],
    ["cluster.tls", digestNamed(cluster.tls)],
    ["cluster.blobs.s3", digest([s3?.accessKeyId, s3?.secretAccessKey])],
    ["https.cert", secrets.digest(JSON.stringify([certificate?.cert, certificate?.key]))],
    ["agentServiceToken", digest([await findOwnToken(secrets, "agent")])],
    ["workflowServiceToken", digest([await findOwnToken(secrets, "workflow")])],
  ]);
}

/** The names whose secrets differ. A provider that is only in one of both is no rotation. */
function changedSecrets(before: SecretDigests, after: SecretDigests): readonly string[] {
  return [...after].flatMap(([name, digest]) => (before.has(name) && before.get(name) !== digest ? [name] : []));
}

/**
 * Notices changes of files, also if the file is a link that then leads to another file, as Kubernetes and systemd replace secrets. A change
 * counts when the file is the same at two looks: a file that is written in place may be half full at the first.
 */
class SettledFiles {
  #accepted: ReadonlyMap<string, string> = new Map();
  #seen: ReadonlyMap<string, string> = new Map();

  /**
   * Whether files have changed since a look returned true. The first time, it returns true, too: a file may have changed since it was read
   * before the first look. Later changes, also of this moment, are found by the next looks.
   */
  async look(files: readonly string[]): Promise<boolean> {
    const marks = new Map<string, string>();
    // One after the other: the work at a time stays the same for any number of files.
    for (const file of new Set(files)) marks.set(file, await markOf(file));
    const changed = [...marks].filter(([file, mark]) => this.#accepted.get(file) !== mark);
    const isSettled = changed.length > 0 && changed.every(([file, mark]) => this.#seen.get(file) === mark);
    this.#seen = marks;
    if (isSettled) this.#accepted = marks;
    return isSettled;
  }
}

/** Differs for each content of a file, because every write sets its times. Says why a file cannot be found. */
async function markOf(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "unreadable";
  }
}
