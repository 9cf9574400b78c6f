import { dirname, join } from "node:path";
import { runProgram } from "./run-program.ts";

export interface Tarball {
  /** Absolute. */
  readonly path: string;
  /** Paths inside the package. */
  readonly files: readonly string[];
  /** Bytes of the tarball, and of its unpacked files. */
  readonly size: number;
  readonly unpackedSize: number;
}

/** Pack folders into `into`, as the registry would get them. Returns the packages in the same order. */
export async function packPackages(folders: readonly string[], into: string): Promise<Tarball[]> {
  const packed = JSON.parse(
    await runProgram("npm", ["pack", "--json", "--pack-destination", into, ...folders], dirname(into)),
  ) as {
    filename: string;
    size: number;
    unpackedSize: number;
    files: { path: string }[];
  }[];
  return packed.map(({ filename, size, unpackedSize, files }) => ({
    path: join(into, filename),
    files: files.map(({ path }) => path),
    size,
    unpackedSize,
  }));
}
