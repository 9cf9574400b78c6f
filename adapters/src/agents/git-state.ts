import { execFile } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import type { ports } from "@portico/core";

/** How long the state of a folder is cached. */
const FRESH_MS = 5000;
/** Timeout of git, for example on a network folder. */
const GIT_MS = 5000;
/** Reading a folder's state must not run its hooks, ask for a password, or write to it. */
const QUIET = ["--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];
const ENVIRONMENT = { GIT_TERMINAL_PROMPT: "0", GIT_OPTIONAL_LOCKS: "0", LC_ALL: "C" };

/**
 * The git state of folders, read without blocking and cached for a short time. Only a folder's own repository counts, not a
 * surrounding one. The comparison with the upstream runs in the background: until it has finished, the answer is `unknown` or the
 * previous one.
 */
export class GitStates {
  readonly #clock: ports.Clock;
  readonly #signal: AbortSignal;
  readonly #known = new Map<string, { readonly at: number; readonly state: ports.GitState }>();
  readonly #comparing = new Map<string, Promise<void>>();

  /** `signal` ends running git processes. */
  constructor(clock: ports.Clock, signal: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
  }

  async of(folder: string): Promise<ports.GitState> {
    const known = this.#known.get(folder);
    if (known && this.#clock.now() - known.at < FRESH_MS) return known.state;
    const repository = await findRepository(folder);
    if (!repository) return this.#keep(folder, { hasGit: false });
    if (!(await hasRemote(repository))) return this.#keep(folder, { hasGit: true, hasRemote: false });
    const state = this.#keep(folder, { hasGit: true, hasRemote: true, syncStatus: known?.state.syncStatus ?? "unknown" });
    if (!this.#comparing.has(folder)) {
      const comparing = this.#compare(folder).finally(() => this.#comparing.delete(folder));
      this.#comparing.set(folder, comparing);
    }
    return state;
  }

  /** Resolves when no git process runs any more. */
  async settled(): Promise<void> {
    await Promise.all(this.#comparing.values());
  }

  async #compare(folder: string): Promise<void> {
    const syncStatus = await compareWithUpstream(folder, this.#signal);
    this.#keep(folder, { hasGit: true, hasRemote: true, syncStatus });
  }

  #keep(folder: string, state: ports.GitState): ports.GitState {
    this.#known.set(folder, { at: this.#clock.now(), state });
    return state;
  }
}

/** The folder's repository directory; worktrees and submodules have a file that names it. */
async function findRepository(folder: string): Promise<string | undefined> {
  const path = join(folder, ".git");
  try {
    if ((await stat(path)).isDirectory()) return path;
    const named = /^gitdir: (.+)$/m.exec(await readFile(path, "utf8"))?.[1];
    return named === undefined ? undefined : resolve(folder, named.trim());
  } catch {
    return undefined;
  }
}

async function hasRemote(repository: string): Promise<boolean> {
  try {
    // A worktree shares the configuration of its main repository.
    const common = await readFile(join(repository, "commondir"), "utf8").catch(() => ".");
    const config = await readFile(join(repository, common.trim(), "config"), "utf8");
    return /^[ \t]*\[remote[ \t]+"/m.test(config);
  } catch {
    return false;
  }
}

async function compareWithUpstream(folder: string, signal: AbortSignal): Promise<NonNullable<ports.GitState["syncStatus"]>> {
  try {
    const { stdout } = await promisify(execFile)("git", [...QUIET, "rev-list", "--left-right", "--count", "HEAD...@{upstream}"], {
      cwd: folder,
      env: { ...process.env, ...ENVIRONMENT },
      timeout: GIT_MS,
      signal,
    });
    const [ahead = Number.NaN, behind = Number.NaN] = stdout.trim().split(/\s+/).map(Number);
    if (Number.isNaN(ahead + behind)) return "unknown";
    if (ahead > 0) return behind > 0 ? "diverged" : "ahead";
    return behind > 0 ? "behind" : "synced";
  } catch {
    // No git, no commit, no upstream, or too slow.
    return "unknown";
  }
}
