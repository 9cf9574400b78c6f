import { tick, untrack } from "svelte";
import type { Attachment } from "svelte/attachments";

/** If the view is within this distance of the end, it scrolls with new content. */
const NEAR_PX = 48;

/** The scroll position of a list that grows at its end: it follows the end until the user scrolls up. */
export class FollowedEnd {
  isFollowing = $state(true);
  #box: HTMLElement | undefined;
  /** The last known scroll position. */
  #lastTop = 0;

  /** For the scrolling element, which has one child. */
  readonly list: Attachment<HTMLElement> = (box) => {
    this.#box = box;
    const watch = new ResizeObserver(() => {
      if (untrack(() => this.isFollowing)) this.#scrollToEnd();
    });
    watch.observe(box.firstElementChild!);
    watch.observe(box);
    const scrolled = () => this.#scrolled(box);
    box.addEventListener("scroll", scrolled);
    return () => {
      watch.disconnect();
      box.removeEventListener("scroll", scrolled);
    };
  };

  toTheEnd(): void {
    this.isFollowing = true;
    this.#scrollToEnd();
  }

  /** Keeps the visible text at its place while content is added above it. */
  async keepPlace(add: () => Promise<void>): Promise<void> {
    const box = this.#box!;
    // By what is visible and not by the distance to the end: turns below may become taller meanwhile.
    const top = box.getBoundingClientRect().top;
    const kept = Array.from(box.firstElementChild!.children)
      .filter((child) => child.hasAttribute("data-place"))
      .find((place) => place.getBoundingClientRect().bottom > top);
    const stood = kept?.getBoundingClientRect().top ?? 0;
    await add();
    await tick();
    if (kept?.isConnected) box.scrollTop += kept.getBoundingClientRect().top - stood;
  }

  #scrollToEnd(): void {
    const box = this.#box!;
    box.scrollTop = box.scrollHeight;
    this.#lastTop = box.scrollTop;
  }

  #scrolled({ scrollTop, scrollHeight, clientHeight }: HTMLElement): void {
    if (scrollHeight - scrollTop - clientHeight < NEAR_PX) this.isFollowing = true;
    // Growing content, such as a picture, also increases the distance to the end. Only scrolling up stops the following.
    else if (scrollTop < this.#lastTop) this.isFollowing = false;
    this.#lastTop = scrollTop;
  }
}
