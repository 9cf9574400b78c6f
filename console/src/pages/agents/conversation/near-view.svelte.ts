import type { Attachment } from "svelte/attachments";

/** What is within this part of the height of the view beyond its ends is rendered completely, so that scrolling shows nothing unfinished. */
const MARGIN = "100%";

/** Tells the places of a scrolling list whether they are near its visible part. */
export class NearView {
  /** The width of the list. A height that was measured at another width is wrong. */
  width = $state(0);
  readonly #places = new WeakMap<Element, (isNear: boolean, height: number) => void>();
  #view = $state.raw<IntersectionObserver>();

  /** For the scrolling element. */
  readonly list: Attachment<HTMLElement> = (list) => {
    const view = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting, boundingClientRect } of entries)
          this.#places.get(target)?.(isIntersecting, boundingClientRect.height);
      },
      { root: list, rootMargin: `${MARGIN} 0px` },
    );
    this.#view = view;
    const size = new ResizeObserver(() => (this.width = list.clientWidth));
    size.observe(list);
    return () => {
      view.disconnect();
      size.disconnect();
    };
  };

  /** For a place of the list. `moved` is called at first, and when the place comes near or leaves. */
  place(moved: (isNear: boolean, height: number) => void): Attachment<HTMLElement> {
    return (place) => {
      const view = this.#view;
      this.#places.set(place, moved);
      view?.observe(place);
      return () => view?.unobserve(place);
    };
  }
}
