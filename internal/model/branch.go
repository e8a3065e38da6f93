package model

// Branch is a way that an operation can go. Each counts how often it was taken,
// so that a comparison with a server can show that it tried them all.
type Branch int

// The branches, by operation.
const (
	AcquireFree Branch = iota
	AcquireMineRaised
	AcquireMineKept
	AcquireMineBroken
	AcquireTry
	AcquirePoll
	AcquireListen
	AcquireNewTicket
	AcquireTicketBehindTail
	AcquireOldTicket
	AcquireQueuedAlready
	AcquireHeldByOther
	AcquireFoundFree
	AcquireAgain
	AcquireFirst
	AcquireGaveToOther
	AcquireTryRefused
	AcquireWaits
	RefusedByReaders
	RefusedByNobody
	FenceNow
	FenceAhead
	FenceGarbage
	FenceWrongType
	FenceBlock
	HandOverNobody
	HandOverMe
	HandOverGarbage
	HandOverDead
	HandOverPoller
	HandOverListener
	HandOverShort
	HandOverCapped
	HandOverMore
	HandOverReaders
	NextNobody
	NextUntold
	NextTold
	ToldInSlot
	ReleaseRests
	ReleaseBroken
	ReleaseAlone
	ReleaseLeavesQueue
	ReleaseNotQueued
	ReleaseOther
	ReleaseAbsent
	ReleaseAbsentHandsOver
	ReleaseAbsentNobody
	ReleaseHands
	ReleaseNobodyLeft
	ReleaseReader
	ReleaseLastReader
	LetGoAbsent
	LetGoOther
	LetGoMine
	RenewAbsent
	RenewOther
	RenewBroken
	RenewRaised
	RenewKept
	RenewAsked
	ResumeAbsent
	ResumeOther
	ResumeBroken
	ResumeAgain
	ResumeFenceWrongType
	ResumePasses
	InspectFree
	InspectHeld
	InspectGarbage
	InspectPoller
	InspectListener
	GuardAbsent
	GuardOther
	GuardReads
	GuardRepeated
	GuardRan
	GuardFailed
	BreakAbsent
	BreakOther
	BreakDeaf
	BreakAsked
	BreakAskedBefore
	BreakAskedWithoutTTL
	BreakHands
	BreakTakes
	BreakTakesForeign
	BreakTakenBefore
	BreakTold
	BreakUntold
	BrokenWrongType
	AdmitAll
	AdmitWriterWaits
	AdmitReader
	AdmitHasShare
	AdmitMeAgain
	AdmitMore
	ReadersEnded
	ReadersWrongType
	ReadAcquireFree
	ReadAcquireMine
	ReadAcquireJoins
	ReadAcquireFirst
	ReadAcquireBehindNobody
	ReadAcquireWaits
	ReadAcquireHeldByOther
	ReadAcquireAgain
	ReadAcquireWithOthers
	ReadAcquireGaveToOther
	ReadAcquireGaveToReaders
	ReadAcquireAnew
	DowngradeAbsent
	DowngradeBroken
	Downgrades
	DowngradeAgain
	DowngradeOther
	MemberAbsent
	MemberMarked
	MemberAsked
	MemberRaised
	MemberKept
	MarkAbsent
	Marks
	MarkAgain
	MarkTold
	MarkUntold
	MarksWrongType
	FateMarked
	FateBroken
	FateUnknown
	RollMarked
	RollUnmarked
	SemAcquireFree
	SemAcquireMineRaised
	SemAcquireMineKept
	SemAcquireBehindNobody
	SemAcquireFirst
	SemAcquireNoPermits
	SemAcquireAgain
	SemAcquireRefused
	SemAcquireWaits
	LimitOfAll
	LimitOfCaller
	LimitGarbage
	LimitWrongType
	PermitsEnded
	GrantHasOne
	GrantGiven
	SemReleaseAlone
	SemReleaseHands
	SemReleaseAbsentHands
	SemReleaseHandsNothing
	SemReleaseLeavesQueue
	SemReleaseNotQueued
	SemLimitRead
	SemLimitSet
	SemLimitUnset
	SemLimitHands
	SemGuardAbsent
	SemGuardHas
	AnnounceListRaised
	AnnounceListKept
	AnnounceGone
	AnnounceGoneAlready
	ProcsDropped
	ProcsWrongType
	RosterNobody
	RosterSome
	WhoisKnown
	WhoisUnknown
	ProcWrongType
	NoteAdds
	NoteTrims
	EventsNewest
	EventsAfter
	EventsOfNoCount
	EventsWrongType
	NoFence
	LockWrongType
	QueueWrongType
	MultiFree
	MultiMineRaised
	MultiMineKept
	MultiMineBroken
	MultiHeld
	MultiQueued
	MultiAllOrNone
	MultiFenceWrongType
	HandOverClosed
	AdmitClosed
	ReadAcquireClosed
	ResumeClosed
	SemClosed
	MultiClosed
	NodeOpen
	NodeClosed
	NodeAnew
	NodeOtherTerms
	NodeWrongType
	StampRead
	Stamps
	StampStands
	StampUsed

	branchCount
)

func (b Branch) String() string { return branchNames[b] }

// Hits returns how often each branch was taken. Every branch is in it, those
// never taken with 0.
func (s *Store) Hits() map[Branch]int64 {
	m := make(map[Branch]int64, branchCount)
	for b, n := range s.hits {
		m[Branch(b)] = n
	}
	return m
}

func (s *Store) hit(b Branch) { s.hits[b]++ }
