import { execFile, spawn, spawnSync } from "node:child_process";
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../rooms/repository.ts";
import { makeBaseRoot } from "./base-image.ts";

const run = promisify(execFile);
const BASE = "localhost/portico-base";
const DOCKERFILE = join(root, "deploy/container/Dockerfile");

/** Whether this machine can build and run an image: root of a Debian with buildah. With `CI` set, their absence is an error. */
export function hasBuildah(): boolean {
  const programs = [
    ["buildah", "--version"],
    ["dpkg-query", "--version"],
    ["unshare", "--version"],
  ] as const;
  const isThere = process.getuid?.() === 0 && programs.every(([name, ...args]) => !spawnSync(name, args).error);
  if (!isThere && process.env["CI"]) throw new Error("CI has to have buildah, and to be root");
  return isThere;
}

/** The image of the repository, built on this machine. */
export interface BuiltImage extends AsyncDisposable {
  /** Its root file system. */
  readonly path: string;
  readonly config: ImageConfig;
  /** Of all files: of the base image, and of the whole image. */
  readonly bytes: { readonly base: number; readonly whole: number };
}

export interface ImageConfig {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly WorkingDir: string;
  readonly Healthcheck: { readonly Test: readonly string[] };
}

/**
 * Builds the Dockerfile of the repository with buildah, in its own storage below `folder`. No registry of images is used: the base image is
 * made of this machine's programs, in place of the one that the Dockerfile names. npm is configured as on this machine.
 */
export async function buildImage(folder: string): Promise<BuiltImage> {
  const storage = ["--root", join(folder, "storage"), "--runroot", join(folder, "run")];
  const withDriver = (driver: string, args: readonly string[]) =>
    run("buildah", [...storage, "--storage-driver", driver, ...args], { cwd: root, maxBuffer: 64 * 1024 ** 2 });
  // Where it works, overlay copies no files.
  const driver = await withDriver("overlay", ["from", "scratch"]).then(
    () => "overlay",
    () => "vfs",
  );
  const buildah = async (...args: string[]) => (await withDriver(driver, args)).stdout.trim();
  const bytesOf = async (mounted: string) => Number((await run("du", ["-sb", mounted])).stdout.split("\t")[0]);

  const base = join(folder, "base");
  mkdirSync(base);
  makeBaseRoot(base);
  const container = await buildah("from", "scratch");
  await buildah("add", "--quiet", container, base, "/");
  await buildah("commit", "--quiet", "--rm", container, BASE);
  await buildah(
    ...["bud", "--isolation", "chroot", "--pull-never", "--format", "docker", "--quiet"],
    ...(await npmOptions(folder)),
    ...["--build-arg", `NODE_IMAGE=${BASE}`],
    ...["--file", DOCKERFILE, "--tag", "portico", root],
  );
  const inspected = JSON.parse(await buildah("inspect", "--type", "image", "localhost/portico"));
  const path = await buildah("mount", await buildah("from", "--pull-never", "localhost/portico"));
  return {
    path,
    config: inspected.Docker.config as ImageConfig,
    bytes: { base: await bytesOf(base), whole: await bytesOf(path) },
    async [Symbol.asyncDispose]() {
      await buildah("rm", "--all");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** This machine's npm: its registry, its authorities and its cache. */
async function npmOptions(folder: string): Promise<string[]> {
  const setting = async (key: string) => (await run("npm", ["config", "get", key])).stdout.trim();
  const [registry, cafile, cache] = await Promise.all([setting("registry"), setting("cafile"), setting("cache")]);
  const authorities = cafile === "null" ? process.env["NODE_EXTRA_CA_CERTS"] : cafile;
  const lines = [`registry=${registry}`, "cache=/var/cache/npm", ...(authorities ? [`cafile=${authorities}`] : [])];
  writeFileSync(join(folder, "npmrc"), `${lines.join("\n")}\n`);
  mkdirSync(cache, { recursive: true });
  return [
    ...["--secret", `id=npmrc,src=${join(folder, "npmrc")}`, "--volume", `${cache}:/var/cache/npm`],
    ...(authorities ? ["--volume", `${authorities}:${authorities}:ro`] : []),
  ];
}

/** A container of the image that runs. */
export interface RunningContainer extends AsyncDisposable {
  /** Of its first process, on this machine. */
  readonly pid: number;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Resolves with the exit code of the first process, or the name of the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
}

export interface ContainerOptions {
  /** The volume of the data. The image's folder is its first content. */
  readonly data: string;
  /** In place of the image's command. */
  readonly command?: readonly string[];
  /** Added to that of the image. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Run the image as a container engine would: its user, its environment, its own processes and mounts, with a root file system that is read-only
 * and one volume. The network is this machine's.
 */
export function runImage(
  { path, config }: BuiltImage,
  { data, command = config.Cmd, env = {} }: ContainerOptions,
): RunningContainer {
  const top = `${data}.root`;
  mkdirSync(top, { recursive: true });
  if (!existsSync(data)) cpSync(join(path, "data"), data, { recursive: true, preserveTimestamps: true });
  const [user = 0, group = 0] = config.User.split(":").map(Number);
  for (const folder of [data, join(data, "files")]) {
    chownSync(folder, user, group);
    chmodSync(folder, 0o700);
  }
  const script = `set -e
    mount --make-rprivate /
    mount --bind ${path} ${top}
    mount -o remount,bind,ro ${top}
    mount --bind ${data} ${top}/data
    mount --bind /dev ${top}/dev
    mount -t proc proc ${top}/proc
    exec chroot --userspec=${config.User} ${top} env -i "$@"`;
  const given = [...config.Env, ...Object.entries(env).map(([key, value]) => `${key}=${value}`)];
  const inside = [`--chdir=${config.WorkingDir}`, ...given, ...config.Entrypoint, ...command];
  const child = spawn("unshare", ["--mount", "--pid", "--fork", "sh", "-c", script, "sh", ...inside], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name].setEncoding("utf8").on("data", (text: string) => (written[name] += text));
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) =>
    child.once("close", (code, signal) => resolve(signal ?? code)),
  );
  const firstOf = (pid: number) => Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ")[0]);
  return {
    get pid() {
      return firstOf(child.pid!);
    },
    stdout: () => written.stdout,
    stderr: () => written.stderr,
    ended,
    async [Symbol.asyncDispose]() {
      // With the first process, all others of the container end, and then unshare.
      if (child.exitCode === null && child.signalCode === null) process.kill(firstOf(child.pid!), "SIGKILL");
      await ended;
    },
  };
}
