interface Branch<T> {
  /** The characters between the parent branch and this branch. */
  label: string;
  value: T | undefined;
  /** Child branches by the first character of their label. */
  branches: Map<number, Branch<T>> | undefined;
}

/** A radix tree: values by texts. It finds the texts that begin at a position of another text. Common prefixes are stored once. */
export class TextTree<T> {
  readonly #root: Branch<T> = { label: "", value: undefined, branches: undefined };

  /** Adds a value. A text that already exists keeps its value. */
  add(text: string, value: T): void {
    let branch = this.#root;
    let rest = text;
    while (rest !== "") {
      branch.branches ??= new Map();
      const next = branch.branches.get(rest.charCodeAt(0));
      if (!next) {
        branch.branches.set(rest.charCodeAt(0), { label: rest, value, branches: undefined });
        return;
      }
      const common = commonLength(next.label, rest);
      if (common < next.label.length) split(next, common);
      branch = next;
      rest = rest.slice(common);
    }
    branch.value ??= value;
  }

  /** Values of the texts that begin at a position, the shortest first. */
  *at(text: string, place: number): Generator<T, void> {
    let branch: Branch<T> | undefined = this.#root;
    for (let end = place; ;) {
      branch = branch.branches?.get(text.charCodeAt(end));
      // Slices are compared as blocks. `startsWith` compares single characters.
      if (!branch || text.slice(end, end + branch.label.length) !== branch.label) return;
      end += branch.label.length;
      if (branch.value !== undefined) yield branch.value;
    }
  }
}

/** Splits a branch after this number of characters. The rest becomes its child. */
function split<T>(branch: Branch<T>, length: number): void {
  const below: Branch<T> = { ...branch, label: branch.label.slice(length) };
  branch.label = branch.label.slice(0, length);
  branch.value = undefined;
  branch.branches = new Map([[below.label.charCodeAt(0), below]]);
}

function commonLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && length < other.length && one.charCodeAt(length) === other.charCodeAt(length)) length++;
  return length;
}
