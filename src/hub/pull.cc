// SPDX-License-Identifier: Apache-2.0
#include "hub/pull.h"

#include <algorithm>
#include <thread>

#include "hub/partial_file.h"
#include "hub/pull_plan.h"
#include "platform/file.h"

namespace hearth {
namespace {

// One file's progress as the whole model's.
class FileWatcher final : public DownloadWatcher {
 public:
  FileWatcher(PullWatcher& watcher, uint64_t bytes_before)
      : watcher_(watcher), bytes_before_(bytes_before) {}
  void OnProgress(uint64_t bytes_here) override { watcher_.OnProgress(bytes_before_ + bytes_here); }
  void OnNote(const std::string& note) override { watcher_.OnNote(note); }

 private:
  PullWatcher& watcher_;
  const uint64_t bytes_before_;
};

Result<Pulled> AlreadyHere(const StoredModel& model, PullWatcher& watcher) {
  watcher.OnNote(Printf("%s is on this machine already (%s): %s", model.name.c_str(),
                        NameOf(model.origin), model.path.c_str()));
  return Pulled{.name = model.name, .path = model.path, .bytes = model.bytes, .was_here = true};
}

// A name becomes the place it is downloaded from; `name` is what the store will call it.
Result<ModelReference> WhereFrom(const Inventory& inventory, const ModelStore& store,
                                 const ModelReference& reference, std::string& name) {
  if (reference.kind != ModelReference::Kind::kName) return reference;
  if (IsModelName(reference.name)) {
    // A download that was begun knows where it came from.
    Result<Manifest> begun = store.Read(reference.name);
    if (begun.ok() && !begun->is_complete) {
      if (name.empty()) name = begun->name;
      return ParseReference(begun->source());
    }
  }
  const CatalogueEntry* entry = FindInCatalogue(reference.name);
  if (entry == nullptr) {
    return Error(Code::kNotFound, "no model is known as %s: %s", Quoted(reference.name).c_str(),
                 HowToGet(inventory, reference, reference.name).c_str());
  }
  if (name.empty()) name = entry->name;
  return ModelReference{.kind = ModelReference::Kind::kHub,
                        .repo = std::string(entry->repo),
                        .selector = std::string(entry->selector)};
}

Status CheckMemory(const PullWishes& wishes, const Manifest& manifest) {
  const uint64_t usable = wishes.usable_memory_bytes;
  if (usable == 0 || wishes.ignores_memory || manifest.bytes() <= usable) return Status();
  return Error(Code::kExhausted,
               "%s has %s of weights, and this machine has %s of usable memory: it would not run "
               "here. Choose a smaller model or quantisation, or pass --anyway to download it all "
               "the same",
               manifest.name.c_str(), HumanBytes(manifest.bytes()).c_str(),
               HumanBytes(usable).c_str());
}

Status CheckDisk(const ModelStore& store, const Manifest& manifest) {
  HEARTH_ASSIGN(const uint64_t free, FreeDiskBytes(store.root()));
  const uint64_t held = std::min(store.BytesHeld(manifest.name), manifest.bytes());
  const uint64_t needed = manifest.bytes() - held;
  if (needed <= free) return Status();
  return Error(Code::kExhausted,
               "%s needs %s on the disk of %s, where %s are free: free some space (`hearth list` "
               "shows what is there), or set HEARTH_MODELS to a folder on another disk",
               manifest.name.c_str(), HumanBytes(needed).c_str(), store.root().c_str(),
               HumanBytes(free).c_str());
}

Result<ModelLock> Lock(const ModelStore& store, const std::string& name, const PullWishes& wishes,
                       PullWatcher& watcher) {
  bool was_told = false;
  while (true) {
    Result<ModelLock> lock = store.TryLock(name);
    if (lock.ok() || lock.status().code() != Code::kExhausted) return lock;
    if (!wishes.waits_for_others) return lock;
    if (!was_told) watcher.OnNote(lock.status().message() + "; waiting for it");
    was_told = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

// The same model, whatever state it is in: another of the same name is not overwritten.
Status CheckName(const ModelStore& store, const Manifest& wanted) {
  Result<Manifest> there = store.Read(wanted.name);
  // What a newer version keeps is not overwritten either.
  if (there.status().code() == Code::kUnsupported) return there.status();
  if (!there.ok()) return Status();
  const bool is_same =
      there->repo == wanted.repo && there->url == wanted.url && there->selector == wanted.selector;
  if (is_same) return Status();
  return Error(
      Code::kInvalid,
      "the store has another model named %s, from %s: give this one a name with --name, or "
      "remove that one with `hearth rm %s`",
      wanted.name.c_str(), there->source().c_str(), wanted.name.c_str());
}

// A login page or an error page is a file as well.
Status CheckMagic(const std::string& path) {
  if (!path.ends_with(".gguf")) return Status();
  HEARTH_ASSIGN(const MappedFile file, MappedFile::Open(path));
  const auto head = file.bytes().first(std::min<size_t>(4, file.bytes().size()));
  const std::string_view magic(reinterpret_cast<const char*>(head.data()), head.size());
  if (magic == "GGUF") return Status();
  return Error(Code::kCorrupt, "what was downloaded is not a GGUF file: it starts with %s",
               Quoted(magic).c_str());
}

// A file of an earlier attempt: it got its name only once it had been checked.
bool IsInPlace(const std::string& path, const ManifestFile& file, Result<Manifest>& earlier) {
  if (!earlier.ok()) return false;
  const auto same = [&](const ManifestFile& other) {
    return other.name == file.name && other.bytes == file.bytes && other.digest == file.digest &&
           !file.digest.empty();
  };
  return FileExists(path) && std::any_of(earlier->files.begin(), earlier->files.end(), same);
}

Status FetchFiles(Transport& transport, const ModelStore& store, const PullPlan& plan,
                  const PullWishes& wishes, const ModelLock& lock, PullWatcher& watcher) {
  Result<Manifest> earlier = store.Read(plan.manifest.name);
  HEARTH_TRY(store.Write(plan.manifest));
  uint64_t bytes_before = 0;
  for (size_t i = 0; i < plan.files.size(); ++i) {
    const ManifestFile& file = plan.manifest.files[i];
    const std::string path = store.FolderOf(plan.manifest.name) + "/" + file.name;
    if (IsInPlace(path, file, earlier)) {
      PartialFile::RemoveTraces(path);
    } else {
      FileWatcher file_watcher(watcher, bytes_before);
      HEARTH_TRY(DownloadFile(transport,
                              {.url = plan.files[i].url,
                               .token = plan.token,
                               .path = path,
                               .size = file.bytes,
                               .digest = plan.files[i].digest,
                               .identity = plan.files[i].identity},
                              wishes.policy, file_watcher));
    }
    if (Status status = CheckMagic(path); !status.ok()) {
      static_cast<void>(store.Remove(plan.manifest.name, lock));
      return std::move(status).Within(plan.files[i].url);
    }
    bytes_before += file.bytes;
    watcher.OnProgress(bytes_before);
  }
  return store.SyncFolder(plan.manifest.name);
}

Result<Pulled> Fetch(Transport& transport, const StorePlaces& places, PullPlan& plan,
                     const PullWishes& wishes, PullWatcher& watcher) {
  const ModelStore store(places.own);
  HEARTH_TRY(CheckMemory(wishes, plan.manifest));
  HEARTH_ASSIGN(const ModelLock lock, Lock(store, plan.manifest.name, wishes, watcher));
  HEARTH_TRY(CheckName(store, plan.manifest));
  Result<Manifest> earlier = store.Read(plan.manifest.name);
  Pulled pulled{.name = plan.manifest.name,
                .path = store.PathOf(plan.manifest),
                .bytes = plan.manifest.bytes()};
  if (earlier.ok() && earlier->is_complete) {  // by the one that was waited for
    pulled.path = store.PathOf(*earlier);
    pulled.was_here = true;
    return pulled;
  }
  HEARTH_TRY(CheckDisk(store, plan.manifest));
  HEARTH_TRY(store.MakeFolder(plan.manifest.name));
  watcher.OnPlan(plan.manifest);
  HEARTH_TRY(FetchFiles(transport, store, plan, wishes, lock, watcher));
  plan.manifest.is_complete = true;
  HEARTH_TRY(store.Write(plan.manifest));
  for (const PlannedFile& file : plan.files) {
    pulled.is_checked &= file.digest.kind != DigestKind::kNone;
  }
  return pulled;
}

}  // namespace

Result<Pulled> PullModel(Transport& transport, const StorePlaces& places, const HubAddress& hub,
                         const PullWishes& wishes, PullWatcher& watcher) {
  if (!wishes.name.empty() && !IsModelName(wishes.name)) {
    return Error(Code::kInvalid,
                 "--name %s: expected letters, digits, '.', '_' and '-', starting with a letter or "
                 "digit",
                 Quoted(wishes.name).c_str());
  }
  const Inventory inventory = TakeInventory(places);
  HEARTH_ASSIGN(const ModelReference given, ParseReference(wishes.what));
  const ModelReference reference = HubReferenceOf(hub, given);
  if (wishes.name.empty()) {
    if (const StoredModel* model = FindModel(inventory, reference)) {
      return AlreadyHere(*model, watcher);
    }
  }
  std::string name = wishes.name;
  const ModelStore store(places.own);
  for (const Manifest& manifest : store.List()) {
    if (!manifest.is_complete || manifest.url.empty() || manifest.url != reference.url) continue;
    if (!name.empty() && name != manifest.name) continue;
    return AlreadyHere(
        {.name = manifest.name, .path = store.PathOf(manifest), .bytes = manifest.bytes()},
        watcher);
  }
  HEARTH_ASSIGN(const ModelReference from, WhereFrom(inventory, store, reference, name));
  Result<PullPlan> plan = MakePullPlan(transport, hub, from, name, wishes, watcher);
  if (!plan.ok()) {
    Status status = std::move(plan).status();
    const std::string here = NamesOf(inventory);
    if (status.code() != Code::kIo || here.empty()) return status;
    return Error(Code::kIo, "%s. On this machine are: %s", status.message().c_str(), here.c_str());
  }
  return Fetch(transport, places, *plan, wishes, watcher);
}

}  // namespace hearth
